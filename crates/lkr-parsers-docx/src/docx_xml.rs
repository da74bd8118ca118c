use lkr_domain::Parsed;
use lkr_parsers::{Format, Parser, Result, Source, check_format};

use crate::{
    backdrop::Backdrop,
    blocks::Blocks,
    body::BodyReader,
    body_item::BodyItem,
    error,
    notes::Notes,
    numbering::Lists,
    package::{Package, Relation},
    styles::Styles,
    xml::{ElementKind, Xml, XmlEvent},
};

/// How many XML events are read between two checks of the deadline.
const EVENTS_PER_DEADLINE_CHECK: usize = 4096;

/// Parses DOCX files from their XML.
#[derive(Debug, Clone, Copy, Default)]
pub struct DocxXml;

impl Parser for DocxXml {
    fn name(&self) -> &'static str {
        "zip_xml"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        check_format(Format::Docx, source.bytes)?;
        let mut package = Package::open(source.bytes)?;
        let main = package.main_part()?;
        let mut read = |backdrop| {
            let mut blocks = Blocks::default();
            let mut parts = Parts::read(&mut package, &main, &mut blocks)?;
            let pass = body(source, &mut package.main(&main)?, &mut parts, &mut blocks, backdrop)?;
            for text in parts.notes.texts() {
                blocks.push(BodyItem::Paragraph(text))?;
            }
            Ok((blocks, pass))
        };
        let (mut blocks, pass) = read(Backdrop::default())?;
        // White text in a text box may be left, which the second pass keeps.
        if blocks.is_empty() && pass.is_complete && pass.backdrop.has_picture && !pass.backdrop.is_needed {
            return Err(error::pictures());
        }
        // An image or shape behind a text box may come anywhere in the document, so this is known only at the end.
        if let Some(backdrop) = pass.backdrop.for_second_pass() {
            match if source.is_past_deadline() { Ok(None) } else { read(backdrop).map(Some) } {
                Ok(Some((second, pass))) if pass.is_complete => return second.finish(),
                Ok(_) => blocks.warn("the deadline passed; white text in text boxes was left out"),
                // The first pass is complete except for text that may be white on white.
                Err(error) => blocks.warn(format!("white text in text boxes was left out: {error}")),
            }
        }
        blocks.finish()
    }
}

/// The result of one pass over the main part.
struct PassResult {
    backdrop: Backdrop,
    /// Whether the pass ended before the deadline.
    is_complete: bool,
}

/// The parts beside the main part.
#[derive(Debug, Default)]
struct Parts {
    styles: Styles,
    lists: Lists,
    notes: Notes,
}

impl Parts {
    /// Reads the parts that the main one refers to. Invalid parts are skipped with a warning.
    fn read(package: &mut Package<'_>, main: &str, blocks: &mut Blocks) -> Result<Self> {
        let relations = recover(package.relations(main), blocks)?;
        let mut parts = Self::default();
        for role in ["theme", "settings", "styles", "numbering", "footnotes", "endnotes"] {
            let part = relations.iter().find(|relation| relation.role == role);
            if let Some(Relation { part, .. }) = part {
                let result = parts.read_part(package, role, part);
                recover(result, blocks)?;
            }
        }
        Ok(parts)
    }

    fn read_part(&mut self, package: &mut Package<'_>, role: &str, part: &str) -> Result<()> {
        let Some(mut xml) = package.part(part)? else {
            return Ok(());
        };
        match role {
            "theme" | "settings" => self.styles.theme_colors.read(&mut xml),
            "styles" => self.styles = Styles::read(&mut xml, self.styles.theme_colors)?,
            "numbering" => self.lists = Lists::read(&mut xml)?,
            _ => self.notes.read(&mut xml, &self.styles, &mut self.lists)?,
        }
        Ok(())
    }
}

/// Replaces the error of an invalid part beside the main one by an empty value and a warning.
fn recover<T: Default>(result: Result<T>, blocks: &mut Blocks) -> Result<T> {
    match result {
        Err(error) if error::is_invalid(&error) => {
            blocks.warn(format!("a part of the document could not be read: {error}"));
            Ok(T::default())
        }
        result => result,
    }
}

/// Reads the main part as far as it is valid.
fn body(
    source: &Source<'_>,
    xml: &mut Xml<'_>,
    parts: &mut Parts,
    blocks: &mut Blocks,
    backdrop: Backdrop,
) -> Result<PassResult> {
    match xml.next() {
        Ok(Some(XmlEvent::Start(ElementKind::Document, _))) => {}
        Err(error) => return Err(error),
        Ok(_) => return Err(error::input("the main part is not a Word document")),
    }
    let mut reader =
        BodyReader::new(&parts.styles, &mut parts.lists, &mut parts.notes).with_backdrop(backdrop);
    let end = read_events(source, xml, &mut reader, blocks);
    reader.close();
    for item in reader.take_items() {
        blocks.push(item)?;
    }
    if reader.has_embedded() {
        blocks.warn("an embedded document of another format was not read");
    }
    match end {
        Err(error) if error::is_invalid(&error) && !blocks.is_empty() => {
            blocks.warn(format!("the rest of the text could not be read: {error}"));
        }
        Err(error) => return Err(error),
        Ok(is_complete) => return Ok(PassResult { backdrop: reader.backdrop(), is_complete }),
    }
    // A second pass would fail at the same place.
    Ok(PassResult { backdrop: reader.backdrop(), is_complete: true })
}

/// Reads all events; returns whether the deadline was met.
fn read_events(
    source: &Source<'_>,
    xml: &mut Xml<'_>,
    reader: &mut BodyReader<'_>,
    blocks: &mut Blocks,
) -> Result<bool> {
    let mut count = 0_usize;
    while let Some(event) = xml.next()? {
        reader.handle(&event)?;
        for item in reader.take_items() {
            blocks.push(item)?;
        }
        count += 1;
        if count.is_multiple_of(EVENTS_PER_DEADLINE_CHECK) && source.is_past_deadline() {
            blocks.warn("the deadline passed; the rest of the text was not read");
            return Ok(false);
        }
    }
    Ok(true)
}

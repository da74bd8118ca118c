use lkr_domain::Parsed;
use lkr_parsers::{ErrorKind, Format, Parser, Result, Source, check_format};

use crate::{
    blocks::Blocks,
    error,
    item::Item,
    notes::Notes,
    numbering::Lists,
    package::{Package, Relation},
    scenery::Scenery,
    styles::Styles,
    walk::Walk,
    xml::{Kind, Piece, Xml},
};

/// How many pieces of XML are read before the clock is looked at again.
const PIECES_BETWEEN_LOOKS: usize = 4096;

/// Reads DOCX files by their XML.
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
        let mut read = |scenery| {
            let mut blocks = Blocks::default();
            let mut parts = Parts::read(&mut package, &main, &mut blocks)?;
            let seen = body(source, &mut package.main(&main)?, &mut parts, &mut blocks, scenery)?;
            for text in parts.notes.texts() {
                blocks.push(Item::Paragraph(text))?;
            }
            Ok((blocks, seen))
        };
        let (mut blocks, seen) = read(Scenery::default())?;
        // What lies behind a text box may stand after it, or anywhere: only the end tells whether there is such a thing.
        if let Some(scenery) = seen.scenery.again() {
            match if source.is_over() { Ok(None) } else { read(scenery).map(Some) } {
                Ok(Some((again, seen))) if seen.is_whole => return again.finish(),
                Ok(_) => blocks.warn("time ran out: white words in text boxes were left out"),
                // What the first reading found is complete but for words that may be white on white.
                Err(error) => blocks.warn(format!("white words in text boxes were left out: {error}")),
            }
        }
        blocks.finish()
    }
}

/// What is known once the main part was read.
struct Seen {
    scenery: Scenery,
    /// Whether there was time for all of it.
    is_whole: bool,
}

/// What stands beside the main part.
#[derive(Debug, Default)]
struct Parts {
    styles: Styles,
    lists: Lists,
    notes: Notes,
}

impl Parts {
    /// Reads the parts that the main one refers to. Those that cannot be read are done without, with a warning.
    fn read(package: &mut Package<'_>, main: &str, blocks: &mut Blocks) -> Result<Self> {
        let relations = unless_broken(package.relations(main), blocks)?;
        let mut parts = Self::default();
        for role in ["theme", "settings", "styles", "numbering", "footnotes", "endnotes"] {
            let part = relations.iter().find(|relation| relation.role == role);
            if let Some(Relation { part, .. }) = part {
                let taken = parts.take(package, role, part);
                unless_broken(taken, blocks)?;
            }
        }
        Ok(parts)
    }

    fn take(&mut self, package: &mut Package<'_>, role: &str, part: &str) -> Result<()> {
        let Some(mut xml) = package.part(part)? else {
            return Ok(());
        };
        match role {
            "theme" | "settings" => self.styles.paper.read(&mut xml),
            "styles" => self.styles = Styles::read(&mut xml, self.styles.paper)?,
            "numbering" => self.lists = Lists::read(&mut xml)?,
            _ => self.notes.read(&mut xml, &self.styles, &mut self.lists)?,
        }
        Ok(())
    }
}

/// Goes on with nothing where a part beside the main one is broken.
fn unless_broken<T: Default>(result: Result<T>, blocks: &mut Blocks) -> Result<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::Input => {
            blocks.warn(format!("a part beside the text could not be read: {error}"));
            Ok(T::default())
        }
        result => result,
    }
}

/// Reads the main part, as far as it can be read.
fn body(
    source: &Source<'_>,
    xml: &mut Xml<'_>,
    parts: &mut Parts,
    blocks: &mut Blocks,
    scenery: Scenery,
) -> Result<Seen> {
    match xml.next() {
        Ok(Some(Piece::Open(Kind::Document, _))) => {}
        Err(error) => return Err(error),
        Ok(_) => return Err(error::input("its main part is no Word document")),
    }
    let mut walk = Walk::new(&parts.styles, &mut parts.lists, &mut parts.notes).with(scenery);
    let end = pieces(source, xml, &mut walk, blocks);
    walk.close();
    for item in walk.take() {
        blocks.push(item)?;
    }
    if walk.has_embedded() {
        blocks.warn("a document of another kind is embedded and was not read");
    }
    match end {
        Err(error) if error.kind() == ErrorKind::Input && !blocks.is_empty() => {
            blocks.warn(format!("the rest of the text could not be read: {error}"));
        }
        Err(error) => return Err(error),
        Ok(is_whole) => return Ok(Seen { scenery: walk.scenery(), is_whole }),
    }
    // A main part that breaks off does so each time.
    Ok(Seen { scenery: walk.scenery(), is_whole: true })
}

/// Reads all that comes; whether there was time for it.
fn pieces(source: &Source<'_>, xml: &mut Xml<'_>, walk: &mut Walk<'_>, blocks: &mut Blocks) -> Result<bool> {
    let mut count = 0_usize;
    while let Some(piece) = xml.next()? {
        walk.take_in(&piece)?;
        for item in walk.take() {
            blocks.push(item)?;
        }
        count += 1;
        if count.is_multiple_of(PIECES_BETWEEN_LOOKS) && source.is_over() {
            blocks.warn("time ran out: the rest of the text was not read");
            return Ok(false);
        }
    }
    Ok(true)
}

//! XML piece by piece, as much of it as Word documents are made of.

use std::{cell::Cell, io::Read, rc::Rc};

use lkr_parsers::Result;
use quick_xml::{
    NsReader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
    name::ResolveResult,
};

use crate::{error, utf8::Utf8};

/// Elements lie no deeper in each other. Word itself gives up much earlier.
const MAX_DEPTH: usize = 512;

/// A single tag or text is no longer.
pub(crate) const MAX_PIECE_BYTES: usize = 16 * 1024 * 1024;

/// The elements that have a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Document,
    Paragraph,
    ParagraphProperties,
    ParagraphStyle,
    Numbering,
    NumberingLevel,
    NumberingId,
    OutlineLevel,
    Run,
    RunProperties,
    RunStyle,
    Vanish,
    Color,
    Shading,
    Highlight,
    /// What lies behind all pages.
    Background,
    /// A shape, which may hold a text box.
    Shape,
    /// A shape as older programs write it, with how it is filled.
    OldShape,
    /// How an old shape is filled.
    OldFill,
    ShapeProperties,
    /// The lines around a shape.
    Outline,
    NoFill,
    /// A shape is filled with one colour.
    PlainFill,
    /// A shape is filled with a picture, with several colours, or as its group is.
    RichFill,
    /// A shape is filled as its style says.
    StyleFill,
    FillColor,
    Darker,
    Picture,
    Text,
    MathText,
    Subscript,
    Superscript,
    Denominator,
    Tab,
    Break,
    Hyphen,
    Symbol,
    /// What is not shown: deletions, moves away, instructions of fields, comments' anchors.
    Skipped,
    Alternate,
    Choice,
    Fallback,
    Table,
    TableStyle,
    Row,
    Cell,
    Style,
    StyleName,
    BasedOn,
    AbstractNum,
    AbstractNumId,
    Num,
    Level,
    LevelOverride,
    Start,
    StartOverride,
    Format,
    LevelText,
    Footnote,
    Endnote,
    FootnoteReference,
    EndnoteReference,
    Embedded,
    Relationship,
    Other,
}

/// One step through a text in XML.
#[derive(Debug)]
pub(crate) enum Piece<'a> {
    Open(Kind, &'a BytesStart<'a>),
    Close(Kind),
    /// Text that is to be read.
    Text(&'a str),
}

/// A text in XML, read piece by piece.
pub(crate) struct Xml<'a> {
    reader: NsReader<Utf8<Box<dyn Read + 'a>>>,
    since: Rc<Cell<usize>>,
    buffer: Vec<u8>,
    tag: BytesStart<'static>,
    text: String,
    stack: Vec<Kind>,
}

impl<'a> Xml<'a> {
    /// `since` counts the bytes that `inner` gave for the piece that is being read.
    pub(crate) fn new(inner: Box<dyn Read + 'a>, since: Rc<Cell<usize>>) -> Result<Self> {
        let mut reader = NsReader::from_reader(Utf8::new(inner).map_err(error::io)?);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        let tag = BytesStart::new("");
        Ok(Self { reader, since, buffer: Vec::new(), tag, text: String::new(), stack: Vec::new() })
    }

    /// The next piece; none at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Piece<'_>>> {
        loop {
            self.buffer.clear();
            self.since.set(0);
            let (space, event) =
                self.reader.read_resolved_event_into(&mut self.buffer).map_err(error::xml)?;
            match event {
                Event::Start(tag) => {
                    let kind = kind(&space, tag.local_name().as_ref());
                    if self.stack.len() >= MAX_DEPTH {
                        return Err(error::limit("its elements lie more than 512 deep in each other"));
                    }
                    self.stack.push(kind);
                    if kind != Kind::Other {
                        self.tag = tag.into_owned();
                        return Ok(Some(Piece::Open(kind, &self.tag)));
                    }
                }
                Event::End(_) => match self.stack.pop() {
                    Some(Kind::Other) | None => {}
                    Some(kind) => return Ok(Some(Piece::Close(kind))),
                },
                Event::Text(text) if is_text(self.stack.last()) => {
                    self.text = text.xml10_content().into_owned();
                    return Ok(Some(Piece::Text(&self.text)));
                }
                Event::CData(text) if is_text(self.stack.last()) => {
                    self.text = text.xml10_content().into_owned();
                    return Ok(Some(Piece::Text(&self.text)));
                }
                Event::GeneralRef(reference) if is_text(self.stack.last()) => {
                    self.text = resolved(&reference).into_iter().collect();
                    return Ok(Some(Piece::Text(&self.text)));
                }
                Event::DocType(_) => return Err(error::input("its XML declares a document type")),
                Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }
}

/// The value of the attribute of that local name.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let attributes = attributes.with_checks(false).filter_map(std::result::Result::ok);
    let found = attributes.into_iter().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

/// Whether a property that is on where it stands is on: `w:val` may turn it off.
pub(crate) fn is_on(tag: &BytesStart<'_>) -> bool {
    !matches!(attribute(tag, "val").as_deref(), Some("0" | "false" | "off" | "none"))
}

fn is_text(parent: Option<&Kind>) -> bool {
    matches!(parent, Some(Kind::Text | Kind::MathText))
}

/// The character that a reference stands for. Entities of a document's own are never expanded.
fn resolved(reference: &BytesRef<'_>) -> Option<char> {
    match reference.as_ref() {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

fn kind(space: &ResolveResult<'_>, name: &str) -> Kind {
    let ResolveResult::Bound(space) = space else {
        return Kind::Other;
    };
    let space = space.as_ref();
    // Transitional and strict documents have spaces of their own that end alike.
    if space.ends_with("/wordprocessingml/2006/main") || space.ends_with("/wordprocessingml/main") {
        return word(name);
    }
    if space.ends_with("/officeDocument/2006/math") || space.ends_with("/officeDocument/math") {
        return math(name);
    }
    if space.ends_with("/markup-compatibility/2006") {
        return compatibility(name);
    }
    let drawn = drawing(space, name);
    if drawn != Kind::Other {
        return drawn;
    }
    let is_relation = name == "Relationship" && space.ends_with("/package/2006/relationships");
    if is_relation { Kind::Relationship } else { Kind::Other }
}

fn drawing(space: &str, name: &str) -> Kind {
    match (space.rsplit('/').next(), name) {
        (Some("wordprocessingShape"), "wsp") => Kind::Shape,
        (Some("wordprocessingShape"), "spPr") => Kind::ShapeProperties,
        (Some("picture"), "pic") => Kind::Picture,
        (Some("urn:schemas-microsoft-com:vml"), name) => old_drawing(name),
        (Some("main"), name) if space.contains("/drawingml/") => filling(name),
        _ => Kind::Other,
    }
}

fn old_drawing(name: &str) -> Kind {
    match name {
        "shape" | "rect" | "roundrect" | "oval" | "polyline" => Kind::OldShape,
        "fill" => Kind::OldFill,
        "imagedata" => Kind::Picture,
        _ => Kind::Other,
    }
}

fn filling(name: &str) -> Kind {
    match name {
        "ln" => Kind::Outline,
        "noFill" => Kind::NoFill,
        "solidFill" => Kind::PlainFill,
        "gradFill" | "blipFill" | "pattFill" | "grpFill" => Kind::RichFill,
        "fillRef" => Kind::StyleFill,
        "srgbClr" | "schemeClr" | "prstClr" | "sysClr" | "scrgbClr" | "hslClr" => Kind::FillColor,
        "lumMod" | "shade" => Kind::Darker,
        _ => Kind::Other,
    }
}

fn compatibility(name: &str) -> Kind {
    match name {
        "AlternateContent" => Kind::Alternate,
        "Choice" => Kind::Choice,
        "Fallback" => Kind::Fallback,
        _ => Kind::Other,
    }
}

fn math(name: &str) -> Kind {
    match name {
        "r" => Kind::Run,
        "t" => Kind::MathText,
        "sub" => Kind::Subscript,
        "sup" => Kind::Superscript,
        "den" => Kind::Denominator,
        _ => Kind::Other,
    }
}

fn word(name: &str) -> Kind {
    match name {
        "document" => Kind::Document,
        "p" => Kind::Paragraph,
        "pPr" => Kind::ParagraphProperties,
        "pStyle" => Kind::ParagraphStyle,
        "outlineLvl" => Kind::OutlineLevel,
        "tbl" => Kind::Table,
        "tblStyle" => Kind::TableStyle,
        "tr" => Kind::Row,
        "tc" => Kind::Cell,
        "del" | "moveFrom" | "delText" | "instrText" | "delInstrText" | "pPrChange" | "rPrChange"
        | "tblPrChange" | "tcPrChange" | "numberingChange" => Kind::Skipped,
        "altChunk" => Kind::Embedded,
        "background" => Kind::Background,
        _ => run(name),
    }
}

fn run(name: &str) -> Kind {
    match name {
        "r" => Kind::Run,
        "rPr" => Kind::RunProperties,
        "rStyle" => Kind::RunStyle,
        "vanish" => Kind::Vanish,
        "color" => Kind::Color,
        "shd" => Kind::Shading,
        "highlight" => Kind::Highlight,
        "t" => Kind::Text,
        "tab" | "ptab" => Kind::Tab,
        "br" | "cr" => Kind::Break,
        "noBreakHyphen" => Kind::Hyphen,
        "sym" => Kind::Symbol,
        "footnoteReference" => Kind::FootnoteReference,
        "endnoteReference" => Kind::EndnoteReference,
        "footnote" => Kind::Footnote,
        "endnote" => Kind::Endnote,
        _ => definition(name),
    }
}

fn definition(name: &str) -> Kind {
    match name {
        "style" => Kind::Style,
        "name" => Kind::StyleName,
        "basedOn" => Kind::BasedOn,
        "numPr" => Kind::Numbering,
        "ilvl" => Kind::NumberingLevel,
        "numId" => Kind::NumberingId,
        "abstractNum" => Kind::AbstractNum,
        "abstractNumId" => Kind::AbstractNumId,
        "num" => Kind::Num,
        "lvl" => Kind::Level,
        "lvlOverride" => Kind::LevelOverride,
        "start" => Kind::Start,
        "startOverride" => Kind::StartOverride,
        "numFmt" => Kind::Format,
        "lvlText" => Kind::LevelText,
        _ => Kind::Other,
    }
}

//! XML piece by piece, as much of it as Word documents are made of.

use std::{cell::Cell, io::Read, rc::Rc};

use lkr_parsers::Result;
use quick_xml::{
    NsReader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
};

pub(crate) use crate::kind::Kind;
use crate::{error, kind::kind, utf8::Utf8};

/// Elements lie no deeper in each other. Word itself gives up much earlier.
const MAX_DEPTH: usize = 512;

/// A single tag or text is no longer.
pub(crate) const MAX_PIECE_BYTES: usize = 16 * 1024 * 1024;

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

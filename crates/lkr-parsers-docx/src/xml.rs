//! Streams the XML of Word documents as events.

use std::{cell::Cell, io::Read, rc::Rc};

use lkr_parsers::Result;
use quick_xml::{
    NsReader, XmlVersion,
    events::{BytesRef, BytesStart, Event},
};

pub(crate) use crate::element::ElementKind;
use crate::{element::element_kind, error, utf8::Utf8};

/// Most levels of nested elements. Word itself supports fewer.
const MAX_DEPTH: usize = 512;

/// Most bytes of one tag or text.
pub(crate) const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// An event of the XML stream.
#[derive(Debug)]
pub(crate) enum XmlEvent<'a> {
    Start(ElementKind, &'a BytesStart<'a>),
    End(ElementKind),
    /// Text of the document.
    Text(&'a str),
}

/// A stream of XML events.
pub(crate) struct Xml<'a> {
    reader: NsReader<Utf8<Box<dyn Read + 'a>>>,
    bytes_since_event: Rc<Cell<usize>>,
    buffer: Vec<u8>,
    tag: BytesStart<'static>,
    text: String,
    stack: Vec<ElementKind>,
}

impl<'a> Xml<'a> {
    /// `bytes_since_event` counts the bytes that were read from `inner` for the current event.
    pub(crate) fn new(inner: Box<dyn Read + 'a>, bytes_since_event: Rc<Cell<usize>>) -> Result<Self> {
        let mut reader = NsReader::from_reader(Utf8::new(inner).map_err(error::io)?);
        let config = reader.config_mut();
        config.expand_empty_elements = true;
        config.allow_dangling_amp = true;
        let tag = BytesStart::new("");
        Ok(Self {
            reader,
            bytes_since_event,
            buffer: Vec::new(),
            tag,
            text: String::new(),
            stack: Vec::new(),
        })
    }

    /// The next event; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<XmlEvent<'_>>> {
        loop {
            self.buffer.clear();
            self.bytes_since_event.set(0);
            let (space, event) =
                self.reader.read_resolved_event_into(&mut self.buffer).map_err(error::xml)?;
            match event {
                Event::Start(tag) => {
                    let kind = element_kind(&space, tag.local_name().as_ref());
                    if self.stack.len() >= MAX_DEPTH {
                        return Err(error::limit("it has more than 512 levels of nested elements"));
                    }
                    self.stack.push(kind);
                    if kind != ElementKind::Other {
                        self.tag = tag.into_owned();
                        return Ok(Some(XmlEvent::Start(kind, &self.tag)));
                    }
                }
                Event::End(_) => match self.stack.pop() {
                    Some(ElementKind::Other) | None => {}
                    Some(kind) => return Ok(Some(XmlEvent::End(kind))),
                },
                Event::Text(text) if is_text(self.stack.last()) => {
                    self.text = text.xml10_content().into_owned();
                    return Ok(Some(XmlEvent::Text(&self.text)));
                }
                Event::CData(text) if is_text(self.stack.last()) => {
                    self.text = text.xml10_content().into_owned();
                    return Ok(Some(XmlEvent::Text(&self.text)));
                }
                Event::GeneralRef(reference) if is_text(self.stack.last()) => {
                    self.text = resolve_reference(&reference).into_iter().collect();
                    return Ok(Some(XmlEvent::Text(&self.text)));
                }
                Event::DocType(_) => return Err(error::input("its XML declares a document type")),
                Event::Eof => return Ok(None),
                _ => {}
            }
        }
    }
}

/// The value of the attribute with this local name.
pub(crate) fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let attributes = attributes.with_checks(false).filter_map(std::result::Result::ok);
    let found = attributes.into_iter().find(|attribute| attribute.key.local_name().as_ref() == name)?;
    found.normalized_value(XmlVersion::Implicit1_0).ok().map(std::borrow::Cow::into_owned)
}

/// Whether a property is on. Its presence turns it on, unless `w:val` turns it off.
pub(crate) fn is_on(tag: &BytesStart<'_>) -> bool {
    !matches!(attribute(tag, "val").as_deref(), Some("0" | "false" | "off" | "none"))
}

fn is_text(parent: Option<&ElementKind>) -> bool {
    matches!(parent, Some(ElementKind::Text | ElementKind::MathText))
}

/// The character of a reference. Entities that a document defines are never expanded.
fn resolve_reference(reference: &BytesRef<'_>) -> Option<char> {
    match reference.as_ref() {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "apos" => Some('\''),
        "quot" => Some('"'),
        _ => reference.resolve_char_ref().ok().flatten(),
    }
}

//! Footnotes and endnotes.

use std::collections::HashMap;

use lkr_parsers::Result;

use crate::{
    body::BodyReader,
    body_item::one_line,
    numbering::Lists,
    styles::Styles,
    xml::{ElementKind, Xml, XmlEvent, attribute},
};

/// The notes of a document, numbered in the order of their references.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: HashMap<(ElementKind, String), Note>,
    referenced: Vec<(ElementKind, String)>,
}

#[derive(Debug)]
struct Note {
    text: String,
    number: Option<usize>,
}

impl Notes {
    /// Adds the notes of a part. Of an invalid part, the notes before the error are kept.
    pub(crate) fn read(&mut self, xml: &mut Xml<'_>, styles: &Styles, lists: &mut Lists) -> Result<()> {
        let mut none = Self::default();
        let mut reader = BodyReader::new(styles, lists, &mut none);
        let mut open = None;
        while let Some(event) = xml.next()? {
            match event {
                XmlEvent::Start(kind @ (ElementKind::Footnote | ElementKind::Endnote), tag) => {
                    open = attribute(tag, "id").map(|id| (kind, id));
                }
                XmlEvent::End(ElementKind::Footnote | ElementKind::Endnote) => {
                    let text = one_line(&reader.take_items());
                    self.notes.extend(open.take().map(|id| (id, Note { text, number: None })));
                }
                event => reader.handle(&event)?,
            }
        }
        Ok(())
    }

    /// Adds a reference and returns the number of its note; `None` if the note has no text.
    pub(crate) fn reference_note(&mut self, kind: ElementKind, id: String) -> Option<usize> {
        let key = (kind, id);
        let note = self.notes.get_mut(&key).filter(|note| !note.text.is_empty())?;
        if note.number.is_none() {
            self.referenced.push(key);
            note.number = Some(self.referenced.len());
        }
        note.number
    }

    /// The referenced notes, each with its number in front.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        let notes = self.referenced.iter().filter_map(|key| self.notes.get(key)).zip(1..);
        notes.map(|(note, number)| format!("[{number}] {}", note.text))
    }
}

//! Footnotes and endnotes.

use std::collections::HashMap;

use lkr_parsers::Result;

use crate::{
    item::flat,
    numbering::Lists,
    styles::Styles,
    walk::Walk,
    xml::{Kind, Piece, Xml, attribute},
};

/// The notes of a document, counted as they are referred to.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    notes: HashMap<(Kind, String), Note>,
    referred: Vec<(Kind, String)>,
}

#[derive(Debug)]
struct Note {
    text: String,
    number: Option<usize>,
}

impl Notes {
    /// Adds the notes of a part. Broken parts give what comes before the break.
    pub(crate) fn read(&mut self, xml: &mut Xml<'_>, styles: &Styles, lists: &mut Lists) -> Result<()> {
        let mut none = Self::default();
        let mut walk = Walk::new(styles, lists, &mut none);
        let mut open = None;
        while let Some(piece) = xml.next()? {
            match piece {
                Piece::Open(kind @ (Kind::Footnote | Kind::Endnote), tag) => {
                    open = attribute(tag, "id").map(|id| (kind, id));
                }
                Piece::Close(Kind::Footnote | Kind::Endnote) => {
                    let text = flat(&walk.take());
                    self.notes.extend(open.take().map(|id| (id, Note { text, number: None })));
                }
                piece => walk.take_in(&piece)?,
            }
        }
        Ok(())
    }

    /// The number of the note that is referred to; none where it has no text.
    pub(crate) fn refer(&mut self, kind: Kind, id: String) -> Option<usize> {
        let key = (kind, id);
        let note = self.notes.get_mut(&key).filter(|note| !note.text.is_empty())?;
        if note.number.is_none() {
            self.referred.push(key);
            note.number = Some(self.referred.len());
        }
        note.number
    }

    /// The notes that were referred to, each with its number in front.
    pub(crate) fn texts(&self) -> impl Iterator<Item = String> {
        let noted = self.referred.iter().filter_map(|key| self.notes.get(key)).zip(1..);
        noted.map(|(note, number)| format!("[{number}] {}", note.text))
    }
}

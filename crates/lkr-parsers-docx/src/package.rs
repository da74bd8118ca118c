//! The ZIP archive that a DOCX file is, read within bounds.

use std::{
    cell::Cell,
    io::{self, Cursor, Read},
    rc::Rc,
};

use lkr_parsers::Result;
use zip::{ZipArchive, result::ZipError};

use crate::{
    error,
    xml::{Kind, Piece, Xml, attribute},
};

/// More entries than this no document has.
const MAX_ENTRIES: usize = 10_000;

/// How many bytes of a part are read, counted as they are inflated: what the archive declares is not believed.
const MAX_PART_BYTES: u64 = 64 * 1024 * 1024;

/// How many bytes of the main part are read. Mark-up is many times as long as the text in it.
const MAX_MAIN_BYTES: u64 = 256 * 1024 * 1024;

/// How many relations of a part are read.
const MAX_RELATIONS: usize = 10_000;

/// The signature that the end of a ZIP archive begins with.
const END: &[u8] = b"PK\x05\x06";

/// An archive with parts.
pub(crate) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

/// What a part is to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relation {
    /// The last word of the relation's type, such as `styles`.
    pub(crate) role: String,
    /// The other part's name in the archive.
    pub(crate) part: String,
}

impl<'a> Package<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        // The number is looked at first, as the archive's reader makes room for all entries.
        if declared_entries(bytes) > MAX_ENTRIES {
            return Err(error::limit("it has more than 10,000 entries"));
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(error::zip)?;
        if archive.len() > MAX_ENTRIES {
            return Err(error::limit("it has more than 10,000 entries"));
        }
        Ok(Self { archive })
    }

    /// The name of the main part, as the package's relations tell.
    pub(crate) fn main_part(&mut self) -> Result<String> {
        let relations = self.relations("")?;
        let main = relations.into_iter().find(|relation| relation.role == "officeDocument");
        Ok(main.map_or_else(|| "word/document.xml".to_owned(), |main| main.part))
    }

    /// The relations of a part, or of the package itself where the name is empty. None where they cannot be found.
    pub(crate) fn relations(&mut self, part: &str) -> Result<Vec<Relation>> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let Some(mut xml) = self.part(&format!("{folder}{slash}_rels/{name}.rels"))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        while let Some(piece) = xml.next()? {
            if let Piece::Open(Kind::Relationship, tag) = piece
                && found.len() < MAX_RELATIONS
                && attribute(tag, "TargetMode").as_deref() != Some("External")
                && let (Some(role), Some(target)) = (attribute(tag, "Type"), attribute(tag, "Target"))
            {
                let role = role.rsplit('/').next().unwrap_or_default().to_owned();
                found.push(Relation { role, part: resolve(folder, &target) });
            }
        }
        Ok(found)
    }

    /// A part as XML, unless there is none of that name.
    pub(crate) fn part(&mut self, name: &str) -> Result<Option<Xml<'_>>> {
        self.bounded(name, MAX_PART_BYTES)
    }

    /// The main part as XML.
    pub(crate) fn main(&mut self, name: &str) -> Result<Xml<'_>> {
        self.bounded(name, MAX_MAIN_BYTES)?.ok_or_else(|| error::input("it has no main part"))
    }

    fn bounded(&mut self, name: &str, bytes: u64) -> Result<Option<Xml<'_>>> {
        let Some(index) = self.index(name) else {
            return Ok(None);
        };
        let file = match self.archive.by_index(index) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(error::zip(error)),
        };
        let since = Rc::new(Cell::new(0));
        let metered = Metered { inner: file, left: bytes, since: Rc::clone(&since) };
        Xml::new(Box::new(metered), since).map(Some)
    }

    /// Names are matched as they are, else in the way of a system that knows no case and writes `\`.
    fn index(&self, name: &str) -> Option<usize> {
        let same = |other: &[u8]| {
            other.len() == name.len()
                && other.iter().zip(name.bytes()).all(|(a, b)| {
                    let a = if *a == b'\\' { b'/' } else { *a };
                    a.eq_ignore_ascii_case(&b)
                })
        };
        let exact = self.archive.index_for_name_raw(name.as_bytes());
        exact.or_else(|| self.archive.file_names_raw().position(same))
    }
}

/// The number of entries that the end of the archive declares, the largest where there are several ends.
fn declared_entries(bytes: &[u8]) -> usize {
    let tail = bytes.get(bytes.len().saturating_sub(66_000)..).unwrap_or_default();
    let count = |at: usize| match tail.get(at + 10..at + 12) {
        Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    let ends = tail.windows(END.len()).enumerate().filter(|(_, window)| *window == END);
    ends.map(|(at, _)| count(at)).max().unwrap_or_default()
}

/// The name in the archive that `target` has, seen from a part in `folder`.
fn resolve(folder: &str, target: &str) -> String {
    let from = if target.starts_with('/') { "" } else { folder };
    let mut path: Vec<&str> = Vec::new();
    for step in from.split('/').chain(target.split(['/', '\\'])) {
        match step {
            "" | "." => {}
            ".." => drop(path.pop()),
            step => path.push(step),
        }
    }
    path.join("/")
}

/// Counts the bytes that are inflated, and stops where they are too many.
struct Metered<R> {
    inner: R,
    left: u64,
    /// How many bytes there were since the last piece of XML was complete.
    since: Rc<Cell<usize>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.left = self
            .left
            .checked_sub(length as u64)
            .ok_or_else(|| error::limit_io("a part of it is too long when unpacked"))?;
        self.since.set(self.since.get().saturating_add(length));
        if self.since.get() > crate::xml::MAX_PIECE_BYTES {
            return Err(error::limit_io("one tag or text of it is longer than 16 MiB"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved() {
        for (folder, target, expected) in [
            ("", "word/document.xml", "word/document.xml"),
            ("", "/word/document.xml", "word/document.xml"),
            ("word", "styles.xml", "word/styles.xml"),
            ("word", "../docs/./styles.xml", "docs/styles.xml"),
            ("word", "/other/styles.xml", "other/styles.xml"),
            ("word", "../../../etc/passwd", "etc/passwd"),
            ("word", "media\\a.xml", "word/media/a.xml"),
        ] {
            assert_eq!(resolve(folder, target), expected);
        }
    }

    #[test]
    fn the_number_of_entries_is_read_first() {
        let mut end = END.to_vec();
        end.extend([0, 0, 0, 0, 1, 0, 0x11, 0x27]);
        assert_eq!(declared_entries(&end), 10_001);
        assert!(Package::open(&end).err().unwrap().to_string().contains("10,000 entries"));
        assert_eq!(declared_entries(b"PK\x05\x06"), 0);
    }
}

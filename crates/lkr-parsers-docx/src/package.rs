//! Reads the ZIP archive of a DOCX file within limits.

use std::{
    cell::Cell,
    io::{self, Cursor, Read},
    rc::Rc,
};

use lkr_parsers::Result;
use zip::{ZipArchive, result::ZipError};

use crate::{
    error,
    xml::{ElementKind, Xml, XmlEvent, attribute},
};

/// Most entries of an archive.
const MAX_ENTRIES: usize = 10_000;

/// Most bytes of a part, counted while inflating. The declared size is not trusted.
const MAX_PART_BYTES: u64 = 64 * 1024 * 1024;

/// Most bytes of the main part. Its markup is many times as long as its text.
const MAX_MAIN_BYTES: u64 = 256 * 1024 * 1024;

/// Most relations of a part that are read.
const MAX_RELATIONS: usize = 10_000;

/// The signature of the end record of a ZIP archive.
const END: &[u8] = b"PK\x05\x06";

/// An opened archive.
pub(crate) struct Package<'a> {
    archive: ZipArchive<Cursor<&'a [u8]>>,
}

/// A relation of a part to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relation {
    /// The last segment of the relation's type, such as `styles`.
    pub(crate) role: String,
    /// The name of the other part in the archive.
    pub(crate) part: String,
}

impl<'a> Package<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        // Checked first, because the archive reader allocates memory for all entries.
        if declared_entries(bytes) > MAX_ENTRIES {
            return Err(error::limit("the archive has more than 10,000 entries"));
        }
        let archive = ZipArchive::new(Cursor::new(bytes)).map_err(error::zip)?;
        if archive.len() > MAX_ENTRIES {
            return Err(error::limit("the archive has more than 10,000 entries"));
        }
        Ok(Self { archive })
    }

    /// The name of the main part from the relations of the package.
    pub(crate) fn main_part(&mut self) -> Result<String> {
        let relations = self.relations("")?;
        let main = relations.into_iter().find(|relation| relation.role == "officeDocument");
        Ok(main.map_or_else(|| "word/document.xml".to_owned(), |main| main.part))
    }

    /// The relations of a part, or of the package if the name is empty. Empty if there are none.
    pub(crate) fn relations(&mut self, part: &str) -> Result<Vec<Relation>> {
        let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let Some(mut xml) = self.part(&format!("{folder}{slash}_rels/{name}.rels"))? else {
            return Ok(Vec::new());
        };
        let mut found = Vec::new();
        while let Some(piece) = xml.next()? {
            if let XmlEvent::Start(ElementKind::Relationship, tag) = piece
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

    /// A part as XML; `None` if no part has this name.
    pub(crate) fn part(&mut self, name: &str) -> Result<Option<Xml<'_>>> {
        self.bounded(name, MAX_PART_BYTES)
    }

    /// The main part as XML.
    pub(crate) fn main(&mut self, name: &str) -> Result<Xml<'_>> {
        self.bounded(name, MAX_MAIN_BYTES)?.ok_or_else(|| error::input("the archive has no main part"))
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
        let bytes_since_event = Rc::new(Cell::new(0));
        let limited =
            ByteLimit { inner: file, remaining: bytes, bytes_since_event: Rc::clone(&bytes_since_event) };
        Xml::new(Box::new(limited), bytes_since_event).map(Some)
    }

    /// The index of a part. Names are compared exactly first, then ignoring case and with `\` as `/`.
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

/// The number of entries that the end records of the archive declare; the largest if there are several records.
fn declared_entries(bytes: &[u8]) -> usize {
    let tail = bytes.get(bytes.len().saturating_sub(66_000)..).unwrap_or_default();
    let count = |at: usize| match tail.get(at + 10..at + 12) {
        Some([low, high]) => usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    };
    let ends = tail.windows(END.len()).enumerate().filter(|(_, window)| *window == END);
    ends.map(|(at, _)| count(at)).max().unwrap_or_default()
}

/// Resolves `target`, relative to `folder`, to a name in the archive.
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

/// A reader that counts inflated bytes and fails beyond a limit.
struct ByteLimit<R> {
    inner: R,
    remaining: u64,
    /// How many bytes were read since the last XML event.
    bytes_since_event: Rc<Cell<usize>>,
}

impl<R: Read> Read for ByteLimit<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(into)?;
        self.remaining = self
            .remaining
            .checked_sub(length as u64)
            .ok_or_else(|| error::limit_io("a part of the archive is too large when unpacked"))?;
        self.bytes_since_event.set(self.bytes_since_event.get().saturating_add(length));
        if self.bytes_since_event.get() > crate::xml::MAX_EVENT_BYTES {
            return Err(error::limit_io("a tag or text is longer than 16 MiB"));
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_resolve_within_archive() {
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
    fn declared_number_of_entries_is_checked_first() {
        let mut end = END.to_vec();
        end.extend([0, 0, 0, 0, 1, 0, 0x11, 0x27]);
        assert_eq!(declared_entries(&end), 10_001);
        assert!(Package::open(&end).err().unwrap().to_string().contains("10,000 entries"));
        assert_eq!(declared_entries(b"PK\x05\x06"), 0);
    }
}

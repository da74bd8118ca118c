use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Take, Write},
    path::Path,
};

use lkr_domain::Parsed;
use lkr_parsers::{MAX_TEXT_BYTES, decode_blocks, encode_blocks};

use crate::{Result, error::internal, message::Summary};

/// The text of a file with its blocks, in a file that has no name and goes with this.
#[derive(Debug)]
pub struct Extracted {
    file: File,
    summary: Summary,
}

impl Extracted {
    /// Puts a parsed text into a file in the folder `spool`.
    pub fn new(parsed: &Parsed, spool: &Path) -> Result<Self> {
        let blocks = encode_blocks(&parsed.blocks)?;
        let mut file = tempfile::tempfile_in(spool).map_err(internal)?;
        file.write_all(parsed.text.as_bytes()).and_then(|()| file.write_all(&blocks)).map_err(internal)?;
        Ok(Self { file, summary: Summary::new(&parsed.text, &blocks, parsed.warnings.clone()) })
    }

    /// What a worker wrote, which is believed in nothing.
    pub(crate) fn of_worker(file: File, summary: Summary) -> Result<Self> {
        let length = file.metadata().map_err(internal)?.len();
        let promised = summary.text_bytes.saturating_add(summary.blocks_bytes);
        if length != promised || summary.text_bytes > MAX_TEXT_BYTES as u64 {
            return Err(internal(format!("the worker wrote {length} bytes and told of {promised}")));
        }
        Ok(Self { file, summary })
    }

    /// Whether there is nothing but white space, control characters and characters of no width.
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        self.summary.blank
    }

    /// What was left out or guessed, for the person who sent the file.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.summary.warnings
    }

    /// Adds a warning for the person who sent the file.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.summary.warnings.push(warning.into());
    }

    /// The length of the text in bytes of UTF-8.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.summary.text_bytes
    }

    /// The text with its blocks in memory. Blocks.
    pub fn read(&self) -> Result<Parsed> {
        let mut text = String::new();
        self.part(0, self.summary.text_bytes)?.read_to_string(&mut text).map_err(internal)?;
        let mut blocks = Vec::new();
        self.part(self.summary.text_bytes, self.summary.blocks_bytes)?
            .read_to_end(&mut blocks)
            .map_err(internal)?;
        let blocks = decode_blocks(&blocks, &text)?;
        Ok(Parsed { text, blocks, warnings: self.summary.warnings.clone() })
    }

    /// The length of the blocks as [`encode_blocks`] writes them down.
    #[must_use]
    pub const fn blocks_bytes(&self) -> u64 {
        self.summary.blocks_bytes
    }

    /// The file: the text in UTF-8, and right behind it its blocks.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    fn part(&self, start: u64, length: u64) -> Result<Take<File>> {
        let mut file = self.file.try_clone().map_err(internal)?;
        file.seek(SeekFrom::Start(start)).map_err(internal)?;
        Ok(file.take(length))
    }
}

#[cfg(test)]
mod tests {
    use lkr_domain::BlockKind;
    use lkr_parsers::Composer;

    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let spool = tempfile::tempdir().unwrap();
        let mut composer = Composer::new();
        composer.push(BlockKind::Paragraph, "Größe", Some(3)).unwrap();
        composer.push_furniture(BlockKind::Paragraph, "footer", Some(3)).unwrap();
        composer.warn("page 2 was left out");
        let parsed = composer.finish().unwrap();
        let extracted = Extracted::new(&parsed, spool.path()).unwrap();
        assert_eq!(extracted.read().unwrap(), parsed);
        assert_eq!(extracted.read().unwrap(), parsed, "a second time");
        assert_eq!(extracted.text_bytes(), parsed.text.len() as u64);
        assert!(!extracted.is_blank());
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn what_cannot_be_seen_is_blank() {
        let spool = tempfile::tempdir().unwrap();
        let is_blank = |text: &str| {
            let mut composer = Composer::new();
            composer.push(BlockKind::Paragraph, text, None).unwrap();
            Extracted::new(&composer.finish().unwrap(), spool.path()).unwrap().is_blank()
        };
        for text in
            ["", " \n\u{a0}", "\0\0\n\0", "\u{200b}\u{200c}\u{200d}\u{2060}\u{feff}", "\u{1}\u{1b}\u{7f}"]
        {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", "\u{200b}.\u{200b}", "\0\u{301}", "…"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }

    #[test]
    fn a_worker_that_tells_of_other_bytes_is_not_believed() {
        let summary = Summary { text_bytes: 5, ..Summary::default() };
        let file = tempfile::tempfile().unwrap();
        assert!(Extracted::of_worker(file, summary).is_err());
    }
}

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom, Take, Write},
    path::Path,
};

use lkr_domain::Parsed;
use lkr_parsers::{MAX_TEXT_BYTES, decode_blocks, encode_blocks};

use crate::{Result, error::internal, message::OutputSummary};

/// The extracted text of a file with its blocks, in an unnamed temporary file that is removed on drop.
#[derive(Debug)]
pub struct Extracted {
    file: File,
    summary: OutputSummary,
}

impl Extracted {
    /// Writes a parsed text to an unnamed file in the folder `spool`.
    pub fn new(parsed: &Parsed, spool: &Path) -> Result<Self> {
        let blocks = encode_blocks(&parsed.blocks)?;
        let mut file = tempfile::tempfile_in(spool).map_err(internal)?;
        file.write_all(parsed.text.as_bytes()).and_then(|()| file.write_all(&blocks)).map_err(internal)?;
        Ok(Self { file, summary: OutputSummary::new(&parsed.text, &blocks, parsed.warnings.clone()) })
    }

    /// Accepts the output of a worker if its length matches the report. Blocks are checked when they are read.
    pub(crate) fn from_worker(file: File, summary: OutputSummary) -> Result<Self> {
        let length = file.metadata().map_err(internal)?.len();
        let reported = summary.text_bytes.saturating_add(summary.blocks_bytes);
        if length != reported || summary.text_bytes > MAX_TEXT_BYTES as u64 {
            return Err(internal(format!("the worker wrote {length} bytes but reported {reported}")));
        }
        Ok(Self { file, summary })
    }

    /// Whether the text consists only of white space, control characters and zero-width characters.
    #[must_use]
    pub const fn is_blank(&self) -> bool {
        self.summary.blank
    }

    /// Warnings for the user, for example about omitted pages or a guessed encoding.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.summary.warnings
    }

    /// Adds a warning for the user.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.summary.warnings.push(warning.into());
    }

    /// The length of the text in bytes of UTF-8.
    #[must_use]
    pub const fn text_bytes(&self) -> u64 {
        self.summary.text_bytes
    }

    /// Reads the text with its blocks into memory. Blocking.
    pub fn read(&self) -> Result<Parsed> {
        let mut text = String::new();
        self.section(0, self.summary.text_bytes)?.read_to_string(&mut text).map_err(internal)?;
        let mut blocks = Vec::new();
        self.section(self.summary.text_bytes, self.summary.blocks_bytes)?
            .read_to_end(&mut blocks)
            .map_err(internal)?;
        let blocks = decode_blocks(&blocks, &text)?;
        Ok(Parsed { text, blocks, warnings: self.summary.warnings.clone() })
    }

    /// The length of the blocks in the format of [`encode_blocks`].
    #[must_use]
    pub const fn blocks_bytes(&self) -> u64 {
        self.summary.blocks_bytes
    }

    /// The file: the text in UTF-8, followed by its blocks.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    fn section(&self, start: u64, length: u64) -> Result<Take<File>> {
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
    fn extracted_text_reads_back_unchanged() {
        let spool = tempfile::tempdir().unwrap();
        let mut composer = Composer::new();
        composer.push(BlockKind::Paragraph, "Größe", Some(3)).unwrap();
        composer.push_furniture(BlockKind::Paragraph, "footer", Some(3)).unwrap();
        composer.warn("page 2 was left out");
        let parsed = composer.finish().unwrap();
        let extracted = Extracted::new(&parsed, spool.path()).unwrap();
        assert_eq!(extracted.read().unwrap(), parsed);
        assert_eq!(extracted.read().unwrap(), parsed, "reading again");
        assert_eq!(extracted.text_bytes(), parsed.text.len() as u64);
        assert!(!extracted.is_blank());
        assert_eq!(std::fs::read_dir(spool.path()).unwrap().count(), 0, "the file has no name");
    }

    #[test]
    fn text_of_invisible_characters_is_blank() {
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
    fn worker_output_of_another_length_than_reported_is_refused() {
        let summary = OutputSummary { text_bytes: 5, ..OutputSummary::default() };
        let file = tempfile::tempfile().unwrap();
        assert!(Extracted::from_worker(file, summary).is_err());
    }
}

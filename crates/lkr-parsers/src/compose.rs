use lkr_domain::{Block, BlockKind, Parsed};

use crate::{Error, ErrorKind, Result};

/// Most bytes of text that are extracted from a source.
pub const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// Headings beyond this many are read as paragraphs, so that a small source cannot create millions of sections.
pub(crate) const MAX_HEADINGS: usize = 20_000;

/// Longer headings are read as paragraphs: a title is part of the path of every chunk below it.
pub const MAX_TITLE_CHARS: usize = 300;

/// Beyond this many blocks, consecutive paragraphs are merged.
pub(crate) const MAX_BLOCKS: usize = 200_000;

/// Composes an extracted text from blocks.
///
/// Blank lines separate blocks. Furniture comes after all other blocks, so that a section is one range of the text even
/// if a page footer interrupts it.
#[derive(Debug, Default)]
pub struct Composer {
    text: String,
    blocks: Vec<Block>,
    furniture: Vec<(BlockKind, String, Option<u32>)>,
    furniture_bytes: usize,
    headings: usize,
    warnings: Vec<String>,
}

impl Composer {
    /// Creates a composer without text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a block without the white space at its ends. Blank blocks are ignored. `page` counts from 1.
    ///
    /// # Errors
    /// `Limit` if the text would be longer than [`MAX_TEXT_BYTES`].
    pub fn push(&mut self, kind: BlockKind, text: &str, page: Option<u32>) -> Result<()> {
        let kind = match kind {
            BlockKind::Heading { level, title } => self.heading(level, &title),
            kind => kind,
        };
        self.append(kind, text, page, false)
    }

    /// Adds furniture, such as a running header. It comes after all other blocks.
    ///
    /// # Errors
    /// `Limit` if the text would be longer than [`MAX_TEXT_BYTES`].
    pub fn push_furniture(&mut self, kind: BlockKind, text: &str, page: Option<u32>) -> Result<()> {
        let text = trim(&kind, text);
        if text.is_empty() {
            return Ok(());
        }
        self.check_length(text.len())?;
        self.furniture_bytes += text.len() + SEPARATOR.len();
        self.furniture.push((kind, text.to_owned(), page));
        Ok(())
    }

    /// Adds a warning for the sender of the source.
    pub fn warn(&mut self, warning: impl Into<String>) {
        self.warnings.push(warning.into());
    }

    /// How many bytes of text were added.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.text.len() + self.furniture_bytes
    }

    /// Whether no text was added.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the text with its blocks.
    ///
    /// # Errors
    /// `Limit` if the text would be longer than [`MAX_TEXT_BYTES`].
    pub fn finish(mut self) -> Result<Parsed> {
        self.furniture_bytes = 0;
        for (kind, text, page) in std::mem::take(&mut self.furniture) {
            self.append(kind, &text, page, true)?;
        }
        if self.headings > MAX_HEADINGS {
            self.warn(too_many_headings());
        }
        Ok(Parsed { text: self.text, blocks: self.blocks, warnings: self.warnings })
    }

    /// A heading with its title on one line; a paragraph if the title is empty or too long.
    fn heading(&mut self, level: u8, title: &str) -> BlockKind {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() || title.chars().count() > MAX_TITLE_CHARS {
            return BlockKind::Paragraph;
        }
        self.headings += 1;
        if self.headings > MAX_HEADINGS {
            return BlockKind::Paragraph;
        }
        BlockKind::Heading { level: level.max(1), title }
    }

    fn append(&mut self, kind: BlockKind, text: &str, page: Option<u32>, furniture: bool) -> Result<()> {
        let text = trim(&kind, text);
        if text.is_empty() {
            return Ok(());
        }
        self.check_length(text.len())?;
        if !self.text.is_empty() {
            self.text.push_str(SEPARATOR);
        }
        let start = self.text.len();
        self.text.push_str(text);
        let range = start..self.text.len();
        let is_full = self.blocks.len() >= MAX_BLOCKS && kind == BlockKind::Paragraph;
        let continues = |last: &&mut Block| {
            is_full && last.kind == kind && last.page == page && last.furniture == furniture
        };
        match self.blocks.last_mut().filter(continues) {
            Some(last) => last.range.end = range.end,
            None => self.blocks.push(Block { kind, range, page, furniture }),
        }
        Ok(())
    }

    fn check_length(&self, additional: usize) -> Result<()> {
        if self.len() + SEPARATOR.len() + additional <= MAX_TEXT_BYTES {
            return Ok(());
        }
        Err(text_too_long())
    }
}

/// The error for a source with more than [`MAX_TEXT_BYTES`] of text.
pub(crate) fn text_too_long() -> Error {
    let reason = format!("it contains more than {} MiB of text", MAX_TEXT_BYTES / (1024 * 1024));
    Error::new(ErrorKind::TooMuchText, "extract the text", reason)
}

const SEPARATOR: &str = "\n\n";

/// A block's text without the white space at its ends. Code keeps the indentation of its first line.
fn trim<'a>(kind: &BlockKind, text: &'a str) -> &'a str {
    let text = text.trim_end();
    if *kind != BlockKind::Code {
        return text.trim_start();
    }
    let indented = text.len() - text.trim_start().len();
    let line = text.get(..indented).and_then(|blank| blank.rfind(['\n', '\r'])).map_or(0, |at| at + 1);
    text.get(line..).unwrap_or_default()
}

/// The warning for a source with too many headings.
pub(crate) fn too_many_headings() -> String {
    format!("more than {MAX_HEADINGS} headings; the others are read as paragraphs")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks_of(parsed: &Parsed) -> Vec<(&str, bool, Option<u32>)> {
        let describe =
            |block: &Block| (parsed.text.get(block.range.clone()).unwrap(), block.furniture, block.page);
        parsed.blocks.iter().map(describe).collect()
    }

    #[test]
    fn furniture_follows_all_other_blocks() {
        let mut composer = Composer::new();
        composer.push_furniture(BlockKind::Paragraph, "ACME report", Some(1)).unwrap();
        composer
            .push(BlockKind::Heading { level: 1, title: "One\n fine ".into() }, " One\nfine ", Some(1))
            .unwrap();
        composer.push(BlockKind::Paragraph, "Text.", Some(1)).unwrap();
        composer.push(BlockKind::Paragraph, " \n", Some(1)).unwrap();
        composer.push_furniture(BlockKind::Paragraph, "ACME report", Some(2)).unwrap();
        composer.push(BlockKind::Paragraph, "More.", Some(2)).unwrap();
        composer.warn("one picture was not read");
        let parsed = composer.finish().unwrap();
        assert_eq!(parsed.text, "One\nfine\n\nText.\n\nMore.\n\nACME report\n\nACME report");
        assert_eq!(
            blocks_of(&parsed),
            [
                ("One\nfine", false, Some(1)),
                ("Text.", false, Some(1)),
                ("More.", false, Some(2)),
                ("ACME report", true, Some(1)),
                ("ACME report", true, Some(2)),
            ]
        );
        assert_eq!(parsed.blocks[0].kind, BlockKind::Heading { level: 1, title: "One fine".into() });
        assert_eq!(parsed.warnings, ["one picture was not read"]);
    }

    #[test]
    fn long_heading_becomes_paragraph() {
        let heading = |words: &str| BlockKind::Heading { level: 1, title: words.to_owned() };
        let (fits, long) = ("ä".repeat(MAX_TITLE_CHARS), "ä".repeat(MAX_TITLE_CHARS + 1));
        let mut composer = Composer::new();
        for words in [&fits, &long] {
            composer.push(heading(words), words, None).unwrap();
        }
        let parsed = composer.finish().unwrap();
        assert_eq!(parsed.blocks[0].kind, heading(&fits));
        assert_eq!(parsed.blocks[1].kind, BlockKind::Paragraph);
    }

    #[test]
    fn code_block_keeps_first_indentation() {
        for (code, kept) in [
            ("\n\n    if a:\n        b\n", "    if a:\n        b"),
            ("  a", "  a"),
            ("\r\n\ta", "\ta"),
            ("a", "a"),
            (" \n ", ""),
        ] {
            let mut composer = Composer::new();
            composer.push(BlockKind::Code, code, None).unwrap();
            assert_eq!(composer.finish().unwrap().text, kept, "{code:?}");
        }
    }

    #[test]
    fn empty_heading_becomes_paragraph() {
        let mut composer = Composer::new();
        composer.push(BlockKind::Heading { level: 0, title: " ".into() }, "***", None).unwrap();
        composer.push(BlockKind::Heading { level: 0, title: "a".into() }, "a", None).unwrap();
        let parsed = composer.finish().unwrap();
        assert_eq!(parsed.blocks[0].kind, BlockKind::Paragraph);
        assert_eq!(parsed.blocks[1].kind, BlockKind::Heading { level: 1, title: "a".into() });
    }

    #[test]
    fn text_beyond_limit_is_rejected() {
        let quarter = "a".repeat(MAX_TEXT_BYTES / 4);
        let mut composer = Composer::new();
        for _ in 0..2 {
            composer.push(BlockKind::Paragraph, &quarter, None).unwrap();
        }
        composer.push_furniture(BlockKind::Paragraph, &quarter, None).unwrap();
        let error = composer.push(BlockKind::Paragraph, &quarter, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooMuchText);
        let error = composer.push_furniture(BlockKind::Paragraph, &quarter, None).unwrap_err();
        assert_eq!(error.to_string(), "extract the text: it contains more than 64 MiB of text");
        let parsed = composer.finish().unwrap();
        assert_eq!(parsed.text.len(), 3 * quarter.len() + 4);
    }

    #[test]
    fn headings_and_blocks_beyond_limit_are_paragraphs_and_merged() {
        let mut composer = Composer::new();
        for _ in 0..=MAX_HEADINGS {
            composer.push(BlockKind::Heading { level: 1, title: "a".into() }, "a", None).unwrap();
        }
        for _ in 0..MAX_BLOCKS {
            composer.push(BlockKind::Paragraph, "b", None).unwrap();
        }
        let parsed = composer.finish().unwrap();
        assert_eq!(parsed.blocks.len(), MAX_BLOCKS);
        assert_eq!(parsed.blocks[MAX_HEADINGS].kind, BlockKind::Paragraph);
        assert_eq!(parsed.warnings, ["more than 20000 headings; the others are read as paragraphs"]);
    }
}

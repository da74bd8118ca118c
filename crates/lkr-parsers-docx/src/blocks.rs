use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Result};

use crate::item::Item;

/// Words longer than this lead nowhere, so they are no heading.
const MAX_TITLE_CHARS: usize = 300;

/// Makes blocks of items: items of lists that follow each other are one.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    composer: Composer,
    list: String,
}

impl Blocks {
    pub(crate) fn push(&mut self, item: Item) -> Result<()> {
        if item.is_blank() {
            return Ok(());
        }
        match item {
            Item::Listed { level, mark, text } => {
                self.listed(level, &mark, &text);
                return Ok(());
            }
            _ => self.close_list()?,
        }
        match item {
            Item::Heading { text, .. } if !is_title(&text) => {
                self.composer.push(BlockKind::Paragraph, &text, None)
            }
            Item::Heading { level, text } => {
                let kind = BlockKind::Heading { level, title: text.clone() };
                self.composer.push(kind, &text, None)
            }
            Item::Table(text) => self.composer.push(BlockKind::Table, &text, None),
            Item::Paragraph(text) | Item::Listed { text, .. } => {
                self.composer.push(BlockKind::Paragraph, &text, None)
            }
        }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.composer.warn(warning);
    }

    /// Whether nothing was read so far.
    pub(crate) fn is_empty(&self) -> bool {
        self.composer.is_empty() && self.list.is_empty()
    }

    pub(crate) fn finish(mut self) -> Result<Parsed> {
        self.close_list()?;
        self.composer.finish()
    }

    fn listed(&mut self, level: u8, mark: &str, text: &str) {
        if !self.list.is_empty() {
            self.list.push('\n');
        }
        self.list.push_str(&"  ".repeat(level.min(8).into()));
        self.list.push_str(mark);
        if !mark.is_empty() {
            self.list.push(' ');
        }
        self.list.push_str(text.trim());
    }

    fn close_list(&mut self) -> Result<()> {
        let list = std::mem::take(&mut self.list);
        self.composer.push(BlockKind::List, &list, None)
    }
}

/// Whether words are few enough to be a heading. White space between them counts once.
fn is_title(text: &str) -> bool {
    let chars = text.split_whitespace().map(|word| word.chars().count() + 1).sum::<usize>();
    chars.saturating_sub(1) <= MAX_TITLE_CHARS
}

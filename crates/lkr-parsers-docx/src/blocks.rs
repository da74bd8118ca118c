use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Result};

use crate::body_item::BodyItem;

/// Longer headings are read as paragraphs.
const MAX_HEADING_CHARS: usize = 300;

/// Makes blocks of items. Consecutive list items form one block.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    composer: Composer,
    list: String,
}

impl Blocks {
    pub(crate) fn push(&mut self, item: BodyItem) -> Result<()> {
        if item.is_blank() {
            return Ok(());
        }
        match item {
            BodyItem::ListItem { level, mark, text } => {
                self.push_list_item(level, &mark, &text);
                return Ok(());
            }
            _ => self.close_list()?,
        }
        match item {
            BodyItem::Heading { text, .. } if !is_short(&text) => {
                self.composer.push(BlockKind::Paragraph, &text, None)
            }
            BodyItem::Heading { level, text } => {
                let kind = BlockKind::Heading { level, title: text.clone() };
                self.composer.push(kind, &text, None)
            }
            BodyItem::Table(text) => self.composer.push(BlockKind::Table, &text, None),
            BodyItem::Paragraph(text) | BodyItem::ListItem { text, .. } => {
                self.composer.push(BlockKind::Paragraph, &text, None)
            }
        }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.composer.warn(warning);
    }

    /// Whether no text was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.composer.is_empty() && self.list.is_empty()
    }

    pub(crate) fn finish(mut self) -> Result<Parsed> {
        self.close_list()?;
        self.composer.finish()
    }

    fn push_list_item(&mut self, level: u8, mark: &str, text: &str) {
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

/// Whether a text is short enough for a heading. Each run of white space counts as one character.
fn is_short(text: &str) -> bool {
    let chars = text.split_whitespace().map(|word| word.chars().count() + 1).sum::<usize>();
    chars.saturating_sub(1) <= MAX_HEADING_CHARS
}

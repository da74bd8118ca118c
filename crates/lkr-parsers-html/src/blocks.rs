use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Result};

use crate::unit::{Shape, Unit};

/// Words longer than this lead nowhere, so they are no heading.
const MAX_TITLE_CHARS: usize = 300;

/// Makes blocks of units: lines of a list and rows of a table that follow each other are one.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    composer: Composer,
    open: Option<Open>,
}

/// A list or a table that may go on.
#[derive(Debug)]
struct Open {
    /// The number of the table; none for a list.
    table: Option<usize>,
    text: String,
    is_furniture: bool,
}

impl Blocks {
    /// Adds a part of a unit.
    pub(crate) fn push(&mut self, unit: &Unit, text: &str, is_furniture: bool) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        match &unit.shape {
            Shape::Listed { depth, mark } => {
                let space = if mark.is_empty() { "" } else { " " };
                let line = format!("{}{mark}{space}{}", "  ".repeat((*depth).min(8)), text.trim());
                self.line(None, &line, is_furniture)
            }
            Shape::Row(table) => self.line(Some(*table), text.trim(), is_furniture),
            Shape::Code => self.block(BlockKind::Code, text.trim_matches(['\n', '\r']), is_furniture),
            Shape::Heading(_) | Shape::Title if is_furniture || text.chars().count() > MAX_TITLE_CHARS => {
                self.block(BlockKind::Paragraph, text, is_furniture)
            }
            Shape::Heading(level) => self.heading(*level, text),
            // A title stands above the headings, as one of them would.
            Shape::Title => self.heading(1, text),
            Shape::Paragraph => self.block(BlockKind::Paragraph, text, is_furniture),
        }
    }

    pub(crate) fn warn(&mut self, warning: impl Into<String>) {
        self.composer.warn(warning);
    }

    pub(crate) fn finish(mut self) -> Result<Parsed> {
        self.close()?;
        self.composer.finish()
    }

    fn line(&mut self, table: Option<usize>, line: &str, is_furniture: bool) -> Result<()> {
        let goes_on =
            self.open.as_ref().is_some_and(|open| open.table == table && open.is_furniture == is_furniture);
        if !goes_on {
            self.close()?;
        }
        let open = self.open.get_or_insert_with(|| Open { table, text: String::new(), is_furniture });
        if !open.text.is_empty() {
            open.text.push('\n');
        }
        open.text.push_str(line);
        Ok(())
    }

    fn heading(&mut self, level: u8, text: &str) -> Result<()> {
        self.block(BlockKind::Heading { level, title: text.to_owned() }, text, false)
    }

    fn block(&mut self, kind: BlockKind, text: &str, is_furniture: bool) -> Result<()> {
        self.close()?;
        self.add(kind, text, is_furniture)
    }

    fn close(&mut self) -> Result<()> {
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        let kind = if open.table.is_some() { BlockKind::Table } else { BlockKind::List };
        self.add(kind, &open.text, open.is_furniture)
    }

    fn add(&mut self, kind: BlockKind, text: &str, is_furniture: bool) -> Result<()> {
        if is_furniture {
            return self.composer.push_furniture(kind, text, None);
        }
        self.composer.push(kind, text, None)
    }
}

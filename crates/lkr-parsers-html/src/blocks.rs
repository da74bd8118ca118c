use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Composer, Result};

use crate::unit::{TextUnit, UnitKind};

/// Longer headings are read as paragraphs.
const MAX_HEADING_CHARS: usize = 300;

/// Makes blocks of units. Consecutive list items or table rows form one block.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    composer: Composer,
    open_block: Option<OpenBlock>,
}

/// A list or a table that the next unit may continue.
#[derive(Debug)]
struct OpenBlock {
    /// The number of the table; `None` for a list.
    table: Option<usize>,
    text: String,
    is_furniture: bool,
}

impl Blocks {
    /// Adds a part of a unit as it is.
    pub(crate) fn push(&mut self, unit: &TextUnit, text: &str, is_furniture: bool) -> Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        match &unit.kind {
            UnitKind::ListItem { depth, marker } => {
                let space = if marker.is_empty() { "" } else { " " };
                let line = format!("{}{marker}{space}{}", "  ".repeat((*depth).min(8)), text.trim());
                self.line(None, &line, is_furniture)
            }
            UnitKind::Row(table) => self.line(Some(*table), text.trim(), is_furniture),
            UnitKind::Code => self.block(BlockKind::Code, text.trim_matches(['\n', '\r']), is_furniture),
            UnitKind::Heading(_) | UnitKind::Title
                if is_furniture || text.chars().count() > MAX_HEADING_CHARS =>
            {
                self.block(BlockKind::Paragraph, text, is_furniture)
            }
            UnitKind::Heading(level) => self.heading(*level, text),
            // The title is the top heading.
            UnitKind::Title => self.heading(1, text),
            UnitKind::Paragraph => self.block(BlockKind::Paragraph, text, is_furniture),
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
        let continues = self
            .open_block
            .as_ref()
            .is_some_and(|open_block| open_block.table == table && open_block.is_furniture == is_furniture);
        if !continues {
            self.close()?;
        }
        let open_block =
            self.open_block.get_or_insert_with(|| OpenBlock { table, text: String::new(), is_furniture });
        if !open_block.text.is_empty() {
            open_block.text.push('\n');
        }
        open_block.text.push_str(line);
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
        let Some(open_block) = self.open_block.take() else {
            return Ok(());
        };
        let kind = if open_block.table.is_some() { BlockKind::Table } else { BlockKind::List };
        self.add(kind, &open_block.text, open_block.is_furniture)
    }

    fn add(&mut self, kind: BlockKind, text: &str, is_furniture: bool) -> Result<()> {
        if is_furniture {
            return self.composer.push_furniture(kind, text, None);
        }
        self.composer.push(kind, text, None)
    }
}

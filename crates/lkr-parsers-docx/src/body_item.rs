/// A part of a document, in reading order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyItem {
    Heading {
        level: u8,
        text: String,
    },
    Paragraph(String),
    /// A list item with its marker and its level, from 0.
    ListItem {
        level: u8,
        mark: String,
        text: String,
    },
    /// The rows, one line each.
    Table(String),
}

const CELL_SEPARATOR: &str = " | ";

impl BodyItem {
    /// The text on one line, as in cells and notes.
    fn one_line(&self) -> String {
        let (mark, text) = match self {
            Self::Heading { text, .. } | Self::Paragraph(text) | Self::Table(text) => ("", text),
            Self::ListItem { mark, text, .. } => (mark.as_str(), text),
        };
        mark.split_whitespace().chain(text.split_whitespace()).collect::<Vec<_>>().join(" ")
    }

    /// Whether it has no text.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Heading { text, .. }
            | Self::Paragraph(text)
            | Self::Table(text)
            | Self::ListItem { text, .. } => text.trim().is_empty(),
        }
    }
}

/// The text of items on one line.
pub(crate) fn one_line(items: &[BodyItem]) -> String {
    let texts: Vec<String> = items.iter().filter(|item| !item.is_blank()).map(BodyItem::one_line).collect();
    texts.join(" ")
}

/// The rows of a table while it is parsed.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: String,
    /// The only cell so far. A table of one cell is a frame, whose content is read as if it were outside of the table.
    single_cell: Option<Vec<BodyItem>>,
    cells: Vec<Vec<BodyItem>>,
}

impl Table {
    pub(crate) fn open_cell(&mut self) {
        self.cells.push(Vec::new());
    }

    /// Adds an item to the open cell, or to a new one in an invalid table without cells.
    pub(crate) fn push(&mut self, item: BodyItem) {
        match self.cells.last_mut() {
            Some(cell) => cell.push(item),
            None => self.cells.push(vec![item]),
        }
    }

    /// Removes the last cell.
    pub(crate) fn drop_cell(&mut self) {
        self.cells.pop();
    }

    /// Removes the open row.
    pub(crate) fn drop_row(&mut self) {
        self.cells.clear();
    }

    pub(crate) fn close_row(&mut self) {
        let mut cells = std::mem::take(&mut self.cells);
        if self.rows.is_empty() && self.single_cell.is_none() && cells.len() == 1 {
            self.single_cell = cells.pop();
            return;
        }
        if let Some(single_cell) = self.single_cell.take() {
            self.write(&[single_cell]);
        }
        self.write(&cells);
    }

    /// Returns the table, or the items of its only cell.
    pub(crate) fn close(mut self) -> Vec<BodyItem> {
        if !self.cells.is_empty() {
            self.close_row();
        }
        self.single_cell.unwrap_or_else(|| vec![BodyItem::Table(self.rows)])
    }

    fn write(&mut self, cells: &[Vec<BodyItem>]) {
        let cells: Vec<String> = cells.iter().map(|cell| one_line(cell)).collect();
        if cells.iter().all(String::is_empty) {
            return;
        }
        if !self.rows.is_empty() {
            self.rows.push('\n');
        }
        self.rows.push_str(&cells.join(CELL_SEPARATOR));
    }
}

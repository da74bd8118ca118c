/// What a document is made of, in the order of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Heading {
        level: u8,
        text: String,
    },
    Paragraph(String),
    /// An item of a list with its mark and its level from 0.
    Listed {
        level: u8,
        mark: String,
        text: String,
    },
    /// Rows, a line each.
    Table(String),
}

/// What parts the cells of a row.
const BETWEEN_CELLS: &str = " | ";

impl Item {
    /// The item on one line, as cells and notes hold it.
    fn flat(&self) -> String {
        let (mark, text) = match self {
            Self::Heading { text, .. } | Self::Paragraph(text) | Self::Table(text) => ("", text),
            Self::Listed { mark, text, .. } => (mark.as_str(), text),
        };
        mark.split_whitespace().chain(text.split_whitespace()).collect::<Vec<_>>().join(" ")
    }

    /// Whether there is nothing to read in it.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Heading { text, .. }
            | Self::Paragraph(text)
            | Self::Table(text)
            | Self::Listed { text, .. } => text.trim().is_empty(),
        }
    }
}

/// Items on one line.
pub(crate) fn flat(items: &[Item]) -> String {
    let texts: Vec<String> = items.iter().filter(|item| !item.is_blank()).map(Item::flat).collect();
    texts.join(" ")
}

/// A table while it is read.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: String,
    /// The only cell so far, as it is: a table of one cell is a frame around what it holds.
    sole: Option<Vec<Item>>,
    cells: Vec<Vec<Item>>,
}

impl Table {
    pub(crate) fn open_cell(&mut self) {
        self.cells.push(Vec::new());
    }

    /// Adds to the open cell, or to the row where a table is broken and has none.
    pub(crate) fn push(&mut self, item: Item) {
        match self.cells.last_mut() {
            Some(cell) => cell.push(item),
            None => self.cells.push(vec![item]),
        }
    }

    /// Drops the open cell, or the last one.
    pub(crate) fn drop_cell(&mut self) {
        self.cells.pop();
    }

    /// Drops the row that is open.
    pub(crate) fn drop_row(&mut self) {
        self.cells.clear();
    }

    pub(crate) fn close_row(&mut self) {
        let mut cells = std::mem::take(&mut self.cells);
        if self.rows.is_empty() && self.sole.is_none() && cells.len() == 1 {
            self.sole = cells.pop();
            return;
        }
        if let Some(sole) = self.sole.take() {
            self.write(&[sole]);
        }
        self.write(&cells);
    }

    /// What the table holds, in the end.
    pub(crate) fn close(mut self) -> Vec<Item> {
        if !self.cells.is_empty() {
            self.close_row();
        }
        self.sole.unwrap_or_else(|| vec![Item::Table(self.rows)])
    }

    fn write(&mut self, cells: &[Vec<Item>]) {
        let cells: Vec<String> = cells.iter().map(|cell| flat(cell)).collect();
        if cells.iter().all(String::is_empty) {
            return;
        }
        if !self.rows.is_empty() {
            self.rows.push('\n');
        }
        self.rows.push_str(&cells.join(BETWEEN_CELLS));
    }
}

use anyhow::Result;
use console::{Alignment, measure_text_width, pad_str, truncate_str};

use crate::terminal::{Output, clean};

/// The space between columns.
const GAP: usize = 2;

/// The width below which a column is not shortened.
const MIN_WIDTH: usize = 8;

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Column {
    /// Never shortened, such as an id.
    Fixed(&'static str),
    /// Shortened where the terminal is too narrow.
    Text(&'static str),
    /// A number: aligned on the right.
    Number(&'static str),
}

/// Rows under headers. In a terminal each row is one line: the widest texts are shortened until it fits.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Column {
    const fn header(self) -> &'static str {
        match self {
            Self::Fixed(header) | Self::Text(header) | Self::Number(header) => header,
        }
    }

    const fn alignment(self) -> Alignment {
        match self {
            Self::Number(_) => Alignment::Right,
            Self::Fixed(_) | Self::Text(_) => Alignment::Left,
        }
    }
}

impl Table {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row with a cell for each column. Control characters and line breaks become spaces.
    pub(crate) fn row(&mut self, cells: &[String]) {
        self.rows.push(cells.iter().map(|cell| clean(cell)).collect());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Prints the headers and rows, and forgets the rows.
    pub(crate) fn print(&mut self, output: &Output) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        let headers: Vec<String> = self.columns.iter().map(|column| column.header().to_owned()).collect();
        let widths = self.widths(&headers, &rows, output.width());
        output.line(&output.bold(self.render(&headers, &widths)).to_string())?;
        rows.iter().try_for_each(|row| output.line(&self.render(row, &widths)))
    }

    fn render(&self, cells: &[String], widths: &[usize]) -> String {
        let cells = self.columns.iter().zip(cells).zip(widths);
        let padded = cells.map(|((column, cell), &width)| {
            let cell = truncate_str(cell, width, "…");
            pad_str(&cell, width, column.alignment(), None).into_owned()
        });
        let line = padded.collect::<Vec<_>>().join(&" ".repeat(GAP));
        line.trim_end().to_owned()
    }

    /// The width of each column. Where the terminal is too narrow, the widest text gives way first.
    fn widths(&self, headers: &[String], rows: &[Vec<String>], terminal: Option<usize>) -> Vec<usize> {
        let mut widths: Vec<usize> = headers.iter().map(|header| measure_text_width(header)).collect();
        for row in rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(measure_text_width(cell));
            }
        }
        let Some(terminal) = terminal else { return widths };
        let gaps = GAP * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > terminal {
            let texts = self.columns.iter().zip(&mut widths);
            let widest = texts
                .filter(|(column, width)| matches!(column, Column::Text(_)) && **width > MIN_WIDTH)
                .max_by_key(|(_, width)| **width);
            let Some((_, width)) = widest else { break };
            *width -= 1;
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[Column::Fixed("ID"), Column::Text("TITLE"), Column::Number("SIZE")]);
        table.row(&["0123".to_owned(), "日本語の長い題名です\n次".to_owned(), "7".to_owned()]);
        table.row(&["4567".to_owned(), "short".to_owned(), "12345".to_owned()]);
        table
    }

    fn lines(table: &Table, terminal: Option<usize>) -> Vec<String> {
        let headers: Vec<String> = table.columns.iter().map(|column| column.header().to_owned()).collect();
        let widths = table.widths(&headers, &table.rows, terminal);
        table.rows.iter().map(|row| table.render(row, &widths)).collect()
    }

    #[test]
    fn columns_are_aligned_by_the_width_that_is_shown() {
        let lines = lines(&table(), None);
        assert_eq!(lines[0], "0123  日本語の長い題名です 次      7");
        assert_eq!(lines[1], "4567  short                    12345");
        assert_eq!(measure_text_width(&lines[0]), measure_text_width(&lines[1]));
    }

    #[test]
    fn texts_are_shortened_to_the_terminal_and_ids_are_not() {
        let lines = lines(&table(), Some(24));
        assert!(lines.iter().all(|line| measure_text_width(line) <= 24), "{lines:?}");
        assert!(lines[0].starts_with("0123  日本語") && lines[0].contains('…'), "{lines:?}");
    }
}

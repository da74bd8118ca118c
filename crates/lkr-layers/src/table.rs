//! The headers of tables, which are indexed with chunks that begin inside a table.

use std::ops::Range;

use crate::piece::Body;

/// Most characters of a header that are indexed with a chunk: about a fifth of a chunk of the default size.
const MAX_CHARS: usize = 200;

/// A table with as many cells and no header of its own continues the one before, with at most this many pieces of text
/// between them.
const MAX_BETWEEN: usize = 3;

/// The headers of the tables of a document.
#[derive(Debug, Default)]
pub(crate) struct TableHeaders {
    /// The headers with their byte ranges and the units of their tables' rows, in order.
    tables: Vec<(Range<usize>, Range<usize>)>,
    /// A header whose table would be the next piece.
    open: Option<Range<usize>>,
    /// The last header with the cells of its table's rows and the number of pieces since, if no heading came since.
    last: Option<(Range<usize>, usize, usize)>,
}

impl TableHeaders {
    /// Notes a piece of text with its byte range and its units, in order.
    pub(crate) fn note(&mut self, body: Body, text: &str, range: &Range<usize>, units: Range<usize>) {
        let header = self.open.take();
        if body == Body::TableHeader {
            self.open = Some(range.clone());
        } else if body == Body::Table {
            let cells = cells(text.get(range.clone()).unwrap_or_default());
            let continued = || {
                let (header, before, between) = self.last.take()?;
                (cells == before && between <= MAX_BETWEEN).then_some(header)
            };
            self.last = header.or_else(continued).map(|header| (header, cells, 0));
            self.tables.extend(self.last.iter().map(|(header, ..)| (header.clone(), units.clone())));
        } else if let Some((_, _, between)) = &mut self.last {
            *between += 1;
        }
    }

    /// Notes a heading or furniture, which no table continues after.
    pub(crate) fn interrupt(&mut self) {
        (self.open, self.last) = (None, None);
    }

    /// Whether the rows of a table with a header begin with this unit.
    pub(crate) fn begins_rows(&self, unit: usize) -> bool {
        self.tables.last().is_some_and(|(_, rows)| rows.start == unit)
    }

    /// The header of the table in whose rows a chunk begins with this unit, on one line for each of its lines.
    pub(crate) fn before(&self, text: &str, unit: usize) -> Option<String> {
        let next = self.tables.partition_point(|(_, rows)| rows.start <= unit);
        let (header, rows) = self.tables.get(next.checked_sub(1)?)?;
        let header = text.get(header.clone()).filter(|_| rows.contains(&unit))?;
        let end = header.char_indices().nth(MAX_CHARS).map_or(header.len(), |(end, _)| end);
        header.get(..end).map(|header| header.trim_end().to_owned())
    }
}

/// How many cells most rows of a table have at most.
fn cells(rows: &str) -> usize {
    rows.lines().map(|row| row.matches(" | ").count()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use lkr_domain::{Block, BlockKind, Chunk, Parsed};

    use crate::{LayerOptions, layer};

    /// The chunks of a text with these blocks.
    fn chunks(blocks: &[(BlockKind, String)]) -> Vec<Chunk> {
        let mut parsed = Parsed::default();
        for (kind, words) in blocks {
            parsed.text.push_str(if parsed.text.is_empty() { "" } else { "\n\n" });
            let start = parsed.text.len();
            parsed.text.push_str(words);
            let range = start..parsed.text.len();
            parsed.blocks.push(Block { kind: kind.clone(), range, page: Some(1), furniture: false });
        }
        let layered = layer(&parsed, "Report", &LayerOptions { chunk_tokens: 64, ..LayerOptions::default() });
        for chunk in &layered.chunks {
            let cut: String =
                parsed.text.chars().skip(chunk.span.start as usize).take(chunk.span.len() as usize).collect();
            assert_eq!(cut, chunk.text);
        }
        layered.chunks
    }

    fn rows(name: &str) -> String {
        (0..40).map(|at| format!("{name} item {at} | 1,{at:03} | 2,{at:03}\n")).collect()
    }

    #[test]
    fn chunk_that_begins_inside_a_table_has_its_header() {
        let header = (BlockKind::TableHeader, "Millions | 2018 | 2017".to_owned());
        let chunks = chunks(&[
            header,
            (BlockKind::Table, rows("asset")),
            (BlockKind::Paragraph, "Commitments (Note 5)".to_owned()),
            (BlockKind::Table, rows("equity")),
            (BlockKind::Paragraph, "The notes are part of this statement, and they are long. ".repeat(20)),
            (BlockKind::Table, "only | one\nmore | two".to_owned()),
        ]);
        assert!(chunks.len() > 6, "{chunks:?}");
        for chunk in &chunks {
            let is_inside = chunk.text.starts_with("asset") || chunk.text.starts_with("equity");
            let expected = if is_inside { "Millions | 2018 | 2017" } else { "" };
            assert_eq!(chunk.table_header, expected, "{}", chunk.text);
        }
    }

    #[test]
    fn heading_ends_a_table() {
        let heading = BlockKind::Heading { level: 1, title: "Notes".to_owned() };
        let chunks = chunks(&[
            (BlockKind::TableHeader, "Millions | 2018 | 2017".to_owned()),
            (heading, "Notes".to_owned()),
            (BlockKind::Table, rows("asset")),
        ]);
        assert!(chunks.iter().all(|chunk| chunk.table_header.is_empty()), "{chunks:?}");
    }
}

//! Finds the blocks of a text in one pass over its lines.

use std::{iter::Peekable, ops::Range};

use lkr_domain::{Block, BlockKind};

use super::{
    html::{HtmlEnd, html_block},
    line::{Line, lines},
    list::List,
    mark::{self, Fence},
    title,
};
use crate::compose::{MAX_BLOCKS, MAX_HEADINGS};

/// The blocks of a Markdown text, and whether it has more than [`MAX_HEADINGS`] headings.
pub(super) fn blocks(text: &str) -> (Vec<Block>, bool) {
    let mut scan = BlockScanner { text, blocks: Vec::new(), headings: 0, open: OpenBlock::Nothing };
    let mut lines = lines(text).peekable();
    scan.take_front_matter(&mut lines);
    for line in lines {
        scan.line(&line);
    }
    scan.close();
    (scan.blocks, scan.headings > MAX_HEADINGS)
}

#[derive(Debug)]
struct BlockScanner<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    headings: usize,
    open: OpenBlock,
}

/// The block that the next line may continue.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OpenBlock {
    Nothing,
    /// Lines that a setext underline would turn into a heading. `last` is the start of the last one.
    Paragraph {
        range: Range<usize>,
        last: usize,
    },
    Quote {
        range: Range<usize>,
    },
    Table {
        range: Range<usize>,
    },
    List(List),
    /// Indented code.
    Indented {
        range: Range<usize>,
    },
    Fenced {
        range: Range<usize>,
        fence: Fence,
    },
    Html {
        range: Range<usize>,
        end: HtmlEnd,
    },
}

impl<'a> BlockScanner<'a> {
    /// Adds the front matter, if the text begins with one.
    fn take_front_matter(&mut self, lines: &mut Peekable<impl Iterator<Item = Line<'a>>>) {
        let Some(range) = front_matter_range(self.text) else {
            return;
        };
        while lines.next_if(|line| line.content.end <= range.end).is_some() {}
        self.push(BlockKind::Code, range);
    }

    fn line(&mut self, line: &Line<'_>) {
        if !self.continues_open_block(line) {
            self.start_block(line);
        }
    }

    /// Adds the line to the open block if that accepts any line; returns whether it did.
    fn continues_open_block(&mut self, line: &Line<'_>) -> bool {
        match &mut self.open {
            OpenBlock::Fenced { range, fence } => {
                range.end = line.content.end;
                if line.indent() < 4 && fence.is_closed_by(line.trimmed()) {
                    self.close();
                }
                true
            }
            OpenBlock::Html { end: HtmlEnd::Blank, .. } if line.is_blank() => {
                self.close();
                true
            }
            OpenBlock::Html { range, end } => {
                range.end = line.content.end;
                if end.is_last_line(line.text) {
                    self.close();
                }
                true
            }
            OpenBlock::Indented { range } if !line.is_blank() && line.indent() >= 4 => {
                range.end = line.content.end;
                true
            }
            OpenBlock::Indented { .. } if line.is_blank() => true,
            OpenBlock::List(list) => list.accept(line),
            _ => false,
        }
    }

    /// Starts a block with the line, or continues the open one.
    fn start_block(&mut self, line: &Line<'_>) {
        if line.is_blank() {
            return self.close();
        }
        let trimmed = line.trimmed();
        if line.indent() >= 4 {
            return self.push_text(line, |range| OpenBlock::Indented { range });
        }
        if let Some((level, raw)) = mark::atx(trimmed) {
            return self.heading(level, raw, line.content.clone());
        }
        if let (OpenBlock::Paragraph { range, .. }, Some(level)) = (&self.open, mark::setext(trimmed)) {
            return self.setext_heading(level, range.clone(), line);
        }
        if self.start_container(line, trimmed) {
            return;
        }
        if mark::is_delimiter_row(trimmed) && self.start_table(line) {
            return;
        }
        self.push_text(line, |range| OpenBlock::Paragraph { last: range.start, range });
    }

    /// Handles breaks, fences, HTML, quotes, list items and table rows, which end a paragraph.
    fn start_container(&mut self, line: &Line<'_>, trimmed: &str) -> bool {
        let range = line.content.clone();
        if mark::is_thematic_break(trimmed) {
            self.close();
        } else if let Some(fence) = mark::fence(trimmed) {
            self.open(OpenBlock::Fenced { range, fence });
        } else if let Some(end) = html_block(trimmed) {
            self.open(OpenBlock::Html { range, end });
            if end.is_last_line(trimmed) {
                self.close();
            }
        } else if trimmed.starts_with('>') {
            match &mut self.open {
                OpenBlock::Quote { range } => range.end = line.content.end,
                _ => self.open(OpenBlock::Quote { range }),
            }
        } else if let Some(marker) =
            mark::list_marker(trimmed).filter(|marker| marker.interrupts || !self.is_paragraph())
        {
            self.open(OpenBlock::List(List::new(line, marker)));
        } else if trimmed.starts_with('|') {
            match &mut self.open {
                OpenBlock::Table { range } => range.end = line.content.end,
                _ => self.open(OpenBlock::Table { range }),
            }
        } else {
            return false;
        }
        true
    }

    /// Continues the open block with a line without marks, or starts the block that `begin` creates.
    fn push_text(&mut self, line: &Line<'_>, begin: impl FnOnce(Range<usize>) -> OpenBlock) {
        match &mut self.open {
            OpenBlock::Paragraph { range, last } => {
                (range.end, *last) = (line.content.end, line.content.start);
            }
            OpenBlock::Quote { range } | OpenBlock::Table { range } => range.end = line.content.end,
            _ => self.open(begin(line.content.clone())),
        }
    }

    fn heading(&mut self, level: u8, raw: &str, range: Range<usize>) {
        self.close();
        let title = if self.headings < MAX_HEADINGS { title::plain(raw) } else { None };
        self.headings += 1;
        self.push(title.map_or(BlockKind::Paragraph, |title| BlockKind::Heading { level, title }), range);
    }

    /// Turns the open paragraph into a heading.
    fn setext_heading(&mut self, level: u8, paragraph: Range<usize>, line: &Line<'_>) {
        self.open = OpenBlock::Nothing;
        let raw = self.text.get(paragraph.clone()).unwrap_or_default();
        self.heading(level, raw, paragraph.start..line.content.end);
    }

    /// Turns the last line of the open paragraph into the header of a table, if it can be one.
    fn start_table(&mut self, line: &Line<'_>) -> bool {
        let OpenBlock::Paragraph { range, last } = &self.open else {
            return false;
        };
        let (start, last, end) = (range.start, *last, range.end);
        let head = self.text.get(last..end).unwrap_or_default();
        if !head.contains('|') {
            return false;
        }
        self.open = OpenBlock::Nothing;
        if start < last {
            let before = self.text.get(start..last).unwrap_or_default().trim_end().len();
            self.push(BlockKind::Paragraph, start..start + before);
        }
        self.open = OpenBlock::Table { range: last..line.content.end };
        true
    }

    fn is_paragraph(&self) -> bool {
        matches!(self.open, OpenBlock::Paragraph { .. } | OpenBlock::Quote { .. })
    }

    fn open(&mut self, open: OpenBlock) {
        self.close();
        self.open = open;
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.open, OpenBlock::Nothing) {
            OpenBlock::Nothing => {}
            OpenBlock::Paragraph { range, .. } | OpenBlock::Quote { range } => {
                self.push(BlockKind::Paragraph, range);
            }
            OpenBlock::Table { range } => self.push(BlockKind::Table, range),
            OpenBlock::List(list) => self.push(BlockKind::List, list.range),
            OpenBlock::Indented { range } | OpenBlock::Fenced { range, .. } => {
                self.push(BlockKind::Code, range);
            }
            OpenBlock::Html { range, end: HtmlEnd::Blank } => self.push(BlockKind::Paragraph, range),
            OpenBlock::Html { range, .. } => self.push(BlockKind::Code, range),
        }
    }

    fn push(&mut self, kind: BlockKind, range: Range<usize>) {
        let is_full = self.blocks.len() >= MAX_BLOCKS && kind == BlockKind::Paragraph;
        match self.blocks.last_mut().filter(|last| is_full && last.kind == kind) {
            Some(last) => last.range.end = range.end,
            None => self.blocks.push(Block { kind, range, page: None, furniture: false }),
        }
    }
}

/// The range of the front matter. Its first and last lines are `---` or `+++`, and a key follows the first.
fn front_matter_range(text: &str) -> Option<Range<usize>> {
    let mut lines = lines(text);
    let first = lines.next()?;
    let (mark, assigns) = match first.text.trim_end() {
        "---" => ("---", ':'),
        "+++" => ("+++", '='),
        _ => return None,
    };
    let key = lines.next()?;
    let is_plausible = key.text.contains(assigns) || key.text.starts_with('#') || key.text.trim_end() == mark;
    if !is_plausible {
        return None;
    }
    std::iter::once(key)
        .chain(lines)
        .find(|line| line.text.trim_end() == mark)
        .map(|last| first.content.start..last.content.end)
}

//! One pass over the lines of a text, which finds its blocks.

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

/// The blocks of a Markdown text, and whether it has more headings than are read as such.
pub(super) fn blocks(text: &str) -> (Vec<Block>, bool) {
    let mut scan = Scan { text, blocks: Vec::new(), headings: 0, open: Open::Nothing };
    let mut lines = lines(text).peekable();
    scan.front_matter(&mut lines);
    for line in lines {
        scan.line(&line);
    }
    scan.close();
    (scan.blocks, scan.headings > MAX_HEADINGS)
}

#[derive(Debug)]
struct Scan<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    headings: usize,
    open: Open,
}

/// The block that the next line may go on with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Open {
    Nothing,
    /// Lines that a setext underline would make a heading; `last` begins the last of them.
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

impl<'a> Scan<'a> {
    /// Takes the front matter, if the text begins with one.
    fn front_matter(&mut self, lines: &mut Peekable<impl Iterator<Item = Line<'a>>>) {
        let Some(range) = front_matter(self.text) else {
            return;
        };
        while lines.next_if(|line| line.content.end <= range.end).is_some() {}
        self.push(BlockKind::Code, range);
    }

    fn line(&mut self, line: &Line<'_>) {
        if !self.goes_on(line) {
            self.begins(line);
        }
    }

    /// Gives the line to the open block where that takes it whatever the line looks like.
    fn goes_on(&mut self, line: &Line<'_>) -> bool {
        match &mut self.open {
            Open::Fenced { range, fence } => {
                range.end = line.content.end;
                if line.indent() < 4 && fence.is_closed_by(line.trimmed()) {
                    self.close();
                }
                true
            }
            Open::Html { end: HtmlEnd::Blank, .. } if line.is_blank() => {
                self.close();
                true
            }
            Open::Html { range, end } => {
                range.end = line.content.end;
                if end.is_in(line.text) {
                    self.close();
                }
                true
            }
            Open::Indented { range } if !line.is_blank() && line.indent() >= 4 => {
                range.end = line.content.end;
                true
            }
            Open::Indented { .. } if line.is_blank() => true,
            Open::List(list) => list.takes(line),
            _ => false,
        }
    }

    /// Finds the block that a line begins, or goes on with the open one.
    fn begins(&mut self, line: &Line<'_>) {
        if line.is_blank() {
            return self.close();
        }
        let trimmed = line.trimmed();
        if line.indent() >= 4 {
            return self.words(line, |range| Open::Indented { range });
        }
        if let Some((level, raw)) = mark::atx(trimmed) {
            return self.heading(level, raw, line.content.clone());
        }
        if let (Open::Paragraph { range, .. }, Some(level)) = (&self.open, mark::setext(trimmed)) {
            return self.underline(level, range.clone(), line);
        }
        if self.begins_container(line, trimmed) {
            return;
        }
        if mark::is_delimiter_row(trimmed) && self.tabulate(line) {
            return;
        }
        self.words(line, |range| Open::Paragraph { last: range.start, range });
    }

    /// Breaks, fences, HTML, quotes, items and rows, which end a paragraph.
    fn begins_container(&mut self, line: &Line<'_>, trimmed: &str) -> bool {
        let range = line.content.clone();
        if mark::is_break(trimmed) {
            self.close();
        } else if let Some(fence) = mark::fence(trimmed) {
            self.open(Open::Fenced { range, fence });
        } else if let Some(end) = html_block(trimmed) {
            self.open(Open::Html { range, end });
            if end.is_in(trimmed) {
                self.close();
            }
        } else if trimmed.starts_with('>') {
            match &mut self.open {
                Open::Quote { range } => range.end = line.content.end,
                _ => self.open(Open::Quote { range }),
            }
        } else if let Some(item) = mark::item(trimmed).filter(|item| item.interrupts || !self.is_paragraph())
        {
            self.open(Open::List(List::new(line, item)));
        } else if trimmed.starts_with('|') {
            match &mut self.open {
                Open::Table { range } => range.end = line.content.end,
                _ => self.open(Open::Table { range }),
            }
        } else {
            return false;
        }
        true
    }

    /// Words without marks go on with the open block, or begin the one that `begin` makes.
    fn words(&mut self, line: &Line<'_>, begin: impl FnOnce(Range<usize>) -> Open) {
        match &mut self.open {
            Open::Paragraph { range, last } => (range.end, *last) = (line.content.end, line.content.start),
            Open::Quote { range } | Open::Table { range } => range.end = line.content.end,
            _ => self.open(begin(line.content.clone())),
        }
    }

    fn heading(&mut self, level: u8, raw: &str, range: Range<usize>) {
        self.close();
        let title = if self.headings < MAX_HEADINGS { title::plain(raw) } else { None };
        self.headings += 1;
        self.push(title.map_or(BlockKind::Paragraph, |title| BlockKind::Heading { level, title }), range);
    }

    /// Makes a heading of the open paragraph.
    fn underline(&mut self, level: u8, words: Range<usize>, line: &Line<'_>) {
        self.open = Open::Nothing;
        let raw = self.text.get(words.clone()).unwrap_or_default();
        self.heading(level, raw, words.start..line.content.end);
    }

    /// Makes a table of the open paragraph's last line, where that can be its head.
    fn tabulate(&mut self, line: &Line<'_>) -> bool {
        let Open::Paragraph { range, last } = &self.open else {
            return false;
        };
        let (start, last, end) = (range.start, *last, range.end);
        let head = self.text.get(last..end).unwrap_or_default();
        if !head.contains('|') {
            return false;
        }
        self.open = Open::Nothing;
        if start < last {
            let before = self.text.get(start..last).unwrap_or_default().trim_end().len();
            self.push(BlockKind::Paragraph, start..start + before);
        }
        self.open = Open::Table { range: last..line.content.end };
        true
    }

    fn is_paragraph(&self) -> bool {
        matches!(self.open, Open::Paragraph { .. } | Open::Quote { .. })
    }

    fn open(&mut self, open: Open) {
        self.close();
        self.open = open;
    }

    fn close(&mut self) {
        match std::mem::replace(&mut self.open, Open::Nothing) {
            Open::Nothing => {}
            Open::Paragraph { range, .. } | Open::Quote { range } => self.push(BlockKind::Paragraph, range),
            Open::Table { range } => self.push(BlockKind::Table, range),
            Open::List(list) => self.push(BlockKind::List, list.range),
            Open::Indented { range } | Open::Fenced { range, .. } => self.push(BlockKind::Code, range),
            Open::Html { range, end: HtmlEnd::Blank } => self.push(BlockKind::Paragraph, range),
            Open::Html { range, .. } => self.push(BlockKind::Code, range),
        }
    }

    fn push(&mut self, kind: BlockKind, range: Range<usize>) {
        let many = self.blocks.len() >= MAX_BLOCKS && kind == BlockKind::Paragraph;
        match self.blocks.last_mut().filter(|last| many && last.kind == kind) {
            Some(last) => last.range.end = range.end,
            None => self.blocks.push(Block { kind, range, page: None, furniture: false }),
        }
    }
}

/// The range of the front matter: its first line is `---` or `+++`, as is its last, and a key follows the first.
fn front_matter(text: &str) -> Option<Range<usize>> {
    let mut lines = lines(text);
    let first = lines.next()?;
    let (mark, assigns) = match first.text.trim_end() {
        "---" => ("---", ':'),
        "+++" => ("+++", '='),
        _ => return None,
    };
    let key = lines.next()?;
    let plausible = key.text.contains(assigns) || key.text.starts_with('#') || key.text.trim_end() == mark;
    if !plausible {
        return None;
    }
    std::iter::once(key)
        .chain(lines)
        .find(|line| line.text.trim_end() == mark)
        .map(|last| first.content.start..last.content.end)
}

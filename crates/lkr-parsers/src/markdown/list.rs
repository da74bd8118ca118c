//! Which lines a list takes.

use std::ops::Range;

use super::{
    html::html_block,
    line::Line,
    mark::{self, Fence, Item},
};

/// An open list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// Its lines so far.
    pub(super) range: Range<usize>,
    /// The column of the text of the last outermost item.
    column: usize,
    /// Whether the last line was blank.
    paused: bool,
    /// A fence that is open inside an item.
    fence: Option<Fence>,
}

impl List {
    /// The list that `line`, whose item is `item`, begins.
    pub(super) fn new(line: &Line<'_>, item: Item) -> Self {
        let column = line.indent() + item.width;
        Self {
            range: line.content.clone(),
            column,
            paused: false,
            fence: mark::fence_in_item(line.trimmed()),
        }
    }

    /// Whether a line belongs to this list; if so, it is taken in.
    pub(super) fn takes(&mut self, line: &Line<'_>) -> bool {
        if line.is_blank() {
            self.paused = true;
            return true;
        }
        let trimmed = line.trimmed();
        let inside = line.indent() >= self.column;
        let taken = inside || self.takes_outside(line, trimmed);
        if taken {
            self.follow_fence(trimmed);
            self.paused = false;
            self.range.end = line.content.end;
        }
        taken
    }

    /// A next item, or words that go on lazily with the last one.
    fn takes_outside(&mut self, line: &Line<'_>, trimmed: &str) -> bool {
        if line.indent() < 4 && (mark::is_break(trimmed) || mark::atx(trimmed).is_some()) {
            return false;
        }
        if let Some(item) = mark::item(trimmed) {
            self.column = line.indent() + item.width;
            self.fence = None;
            return true;
        }
        let begins_other = trimmed.starts_with(['>', '|']) || mark::fence(trimmed).is_some();
        let lazy = !self.paused && self.fence.is_none() && !begins_other && html_block(trimmed).is_none();
        self.fence = None;
        lazy
    }

    fn follow_fence(&mut self, trimmed: &str) {
        self.fence = match self.fence {
            Some(fence) if fence.is_closed_by(trimmed) => None,
            Some(fence) => Some(fence),
            None => mark::fence(trimmed).or_else(|| mark::fence_in_item(trimmed)),
        };
    }
}

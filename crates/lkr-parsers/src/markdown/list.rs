//! Determines which lines belong to a list.

use std::ops::Range;

use super::{
    html::html_block,
    line::Line,
    mark::{self, Fence, ListMarker},
};

/// An open list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct List {
    /// The range of its lines so far.
    pub(super) range: Range<usize>,
    /// The column of the text of the last top-level item.
    column: usize,
    /// Whether the last line was blank.
    after_blank: bool,
    /// The open code fence inside an item.
    fence: Option<Fence>,
}

impl List {
    /// Starts a list with `line`, which begins with `marker`.
    pub(super) fn new(line: &Line<'_>, marker: ListMarker) -> Self {
        let column = line.indent() + marker.width;
        Self {
            range: line.content.clone(),
            column,
            after_blank: false,
            fence: mark::fence_after_marker(line.trimmed()),
        }
    }

    /// Adds a line if it belongs to this list; returns whether it does.
    pub(super) fn accept(&mut self, line: &Line<'_>) -> bool {
        if line.is_blank() {
            self.after_blank = true;
            return true;
        }
        let trimmed = line.trimmed();
        let is_indented = line.indent() >= self.column;
        let is_accepted = is_indented || self.accept_outside(line, trimmed);
        if is_accepted {
            self.track_fence(trimmed);
            self.after_blank = false;
            self.range.end = line.content.end;
        }
        is_accepted
    }

    /// Whether a line that is not indented is another item, or a lazy continuation of the last one.
    fn accept_outside(&mut self, line: &Line<'_>, trimmed: &str) -> bool {
        if line.indent() < 4 && (mark::is_thematic_break(trimmed) || mark::atx(trimmed).is_some()) {
            return false;
        }
        if let Some(marker) = mark::list_marker(trimmed) {
            self.column = line.indent() + marker.width;
            self.fence = None;
            return true;
        }
        let starts_block = trimmed.starts_with(['>', '|']) || mark::fence(trimmed).is_some();
        let is_lazy =
            !self.after_blank && self.fence.is_none() && !starts_block && html_block(trimmed).is_none();
        self.fence = None;
        is_lazy
    }

    fn track_fence(&mut self, trimmed: &str) {
        self.fence = match self.fence {
            Some(fence) if fence.is_closed_by(trimmed) => None,
            Some(fence) => Some(fence),
            None => mark::fence(trimmed).or_else(|| mark::fence_after_marker(trimmed)),
        };
    }
}

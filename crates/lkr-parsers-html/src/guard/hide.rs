//! Elements that are left out with all that they hold, as their tags say that it is not shown.

use super::{
    LOOK_BACK, MAX_DEPTH, Scan,
    read::Tag,
    tag::{FORMATTING, Name},
};

/// Where the element that is left out begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hidden {
    /// How many elements are open around it.
    open: usize,
    /// How many starts were left out before.
    without: usize,
}

impl Scan<'_> {
    /// Leaves out an element that starts at the byte `start`.
    pub(super) fn begin_hidden(&mut self, name: Name, start: usize) {
        self.replace(start, start, " ");
        self.hidden = Some(Hidden { open: self.open.len(), without: self.without.len() });
        self.hide(name, true);
    }

    /// Follows an element inside, so that its end is told from that of the hidden one.
    pub(super) fn hide(&mut self, name: Name, holds: bool) {
        if !holds {
            return;
        }
        if self.open.len() < 2 * MAX_DEPTH {
            self.open.push(name);
        } else {
            self.without.push(name);
        }
    }

    /// Whether the byte `at` lies inside, now that elements have given way.
    pub(super) fn is_inside(&mut self, at: usize) -> bool {
        if self.hidden.is_some_and(|hidden| self.open.len() <= hidden.open) {
            self.reveal(at);
        }
        self.hidden.is_some()
    }

    /// Takes an end in, if it is of the hidden element or of one inside. Those of others end the hidden one too.
    pub(super) fn ends_inside(&mut self, tag: &Tag, start: usize) -> bool {
        let name = tag.name;
        let Some(hidden) = self.hidden else {
            return false;
        };
        if self.ends_left_out(name, hidden.without) {
            return true;
        }
        let found = self.open.iter().rposition(|open| *open == name).filter(|at| self.reaches(name, *at));
        match found {
            Some(at) if at >= hidden.open => {
                self.open.truncate(at);
                self.is_inside(tag.end);
                return true;
            }
            // Formatting around the hidden element goes on.
            _ if name.is(FORMATTING) => return true,
            Some(_) => {}
            None if self.is_left_out(name, hidden.without) => {}
            None => return true,
        }
        self.reveal(start);
        false
    }

    /// Goes on with the words from the byte `at`.
    pub(super) fn reveal(&mut self, at: usize) {
        if let Some(hidden) = self.hidden.take() {
            self.open.truncate(hidden.open);
            self.without.truncate(hidden.without);
            self.from = at;
        }
    }

    /// Takes in the end of one of the starts that were left out inside.
    fn ends_left_out(&mut self, name: Name, first: usize) -> bool {
        let first = first.max(self.without.len().saturating_sub(LOOK_BACK));
        let found = self.without.iter().skip(first).rposition(|other| *other == name);
        found.map(|at| self.without.remove(first + at)).is_some()
    }

    /// Whether one of the last starts that were left out before has that name.
    fn is_left_out(&self, name: Name, before: usize) -> bool {
        self.without.iter().take(before).rev().take(LOOK_BACK).any(|other| *other == name)
    }
}

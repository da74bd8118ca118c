//! Elements that are left out with all that they hold, as their tags say that it is not shown.

use super::{
    MAX_DEPTH, MAX_UNMATCHED, Sanitizer,
    name::{FORMATTING, TagName},
    tag::Tag,
};

/// Where the element that is left out begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct HiddenElement {
    /// How many elements are open around it.
    open_elements: usize,
    /// How many starts were left out before.
    removed_starts: usize,
}

impl Sanitizer<'_> {
    /// Leaves out an element that starts at the byte `start`.
    pub(super) fn start_hidden(&mut self, name: TagName, start: usize) {
        self.replace(start, start, " ");
        self.hidden = Some(HiddenElement {
            open_elements: self.open_elements.len(),
            removed_starts: self.removed_starts.len(),
        });
        self.push_hidden(name, true);
    }

    /// Follows an element inside, so that its end is told from that of the hidden one.
    pub(super) fn push_hidden(&mut self, name: TagName, has_content: bool) {
        if !has_content {
            return;
        }
        if self.open_elements.len() < 2 * MAX_DEPTH {
            self.open_elements.push(name);
        } else {
            self.removed_starts.push(name);
        }
    }

    /// Whether the byte `at` lies inside, now that elements have given way.
    pub(super) fn is_hidden_at(&mut self, at: usize) -> bool {
        if self.hidden.is_some_and(|hidden| self.open_elements.len() <= hidden.open_elements) {
            self.show(at);
        }
        self.hidden.is_some()
    }

    /// Takes an end in, if it is of the hidden element or of one inside. Those of others end the hidden one too.
    pub(super) fn end_hidden(&mut self, tag: &Tag, start: usize) -> bool {
        let name = tag.name;
        let Some(hidden) = self.hidden else {
            return false;
        };
        if self.take_removed_start(name, hidden.removed_starts) {
            return true;
        }
        let found = self
            .open_elements
            .iter()
            .rposition(|open_elements| *open_elements == name)
            .filter(|at| self.reaches(name, *at));
        match found {
            Some(at) if at >= hidden.open_elements => {
                self.open_elements.truncate(at);
                self.is_hidden_at(tag.end);
                return true;
            }
            // Formatting around the hidden element goes on.
            _ if name.is(FORMATTING) => return true,
            Some(_) => {}
            None if self.is_removed_start(name, hidden.removed_starts) => {}
            None => return true,
        }
        self.show(start);
        false
    }

    /// Goes on with the words from the byte `at`.
    pub(super) fn show(&mut self, at: usize) {
        if let Some(hidden) = self.hidden.take() {
            self.open_elements.truncate(hidden.open_elements);
            self.removed_starts.truncate(hidden.removed_starts);
            self.copied_to = at;
        }
    }

    /// Takes in the end of one of the starts that were left out inside.
    fn take_removed_start(&mut self, name: TagName, first: usize) -> bool {
        let first = first.max(self.removed_starts.len().saturating_sub(MAX_UNMATCHED));
        let found = self.removed_starts.iter().skip(first).rposition(|other| *other == name);
        found.map(|at| self.removed_starts.remove(first + at)).is_some()
    }

    /// Whether one of the last starts that were left out before has that name.
    fn is_removed_start(&self, name: TagName, before: usize) -> bool {
        self.removed_starts.iter().take(before).rev().take(MAX_UNMATCHED).any(|other| *other == name)
    }
}

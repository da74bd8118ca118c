//! Removes elements whose tags hide them, with their content.

use super::{
    MAX_DEPTH, MAX_UNMATCHED, Sanitizer,
    name::{FORMATTING, TagName},
    tag::Tag,
};

/// The state of the scan at the start of the hidden element.
#[derive(Debug, Clone, Copy)]
pub(super) struct HiddenElement {
    /// How many elements were open.
    open_elements: usize,
    /// How many start tags had been removed.
    removed_starts: usize,
}

impl Sanitizer<'_> {
    /// Removes an element that starts at the byte `start`.
    pub(super) fn start_hidden(&mut self, name: TagName, start: usize) {
        self.replace(start, start, " ");
        self.hidden = Some(HiddenElement {
            open_elements: self.open_elements.len(),
            removed_starts: self.removed_starts.len(),
        });
        self.push_hidden(name, true);
    }

    /// Tracks an element inside the hidden one, so that their end tags are not confused.
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

    /// Whether the byte `at` is hidden. Ends the hidden element if an implied end tag has closed it.
    pub(super) fn is_hidden_at(&mut self, at: usize) -> bool {
        if self.hidden.is_some_and(|hidden| self.open_elements.len() <= hidden.open_elements) {
            self.end_hidden_at(at);
        }
        self.hidden.is_some()
    }

    /// Handles an end tag inside the hidden element; whether it is done with. The end tag of an outer element ends the\n    /// hidden one too.
    pub(super) fn end_hidden(&mut self, tag: &Tag, start: usize) -> bool {
        let name = tag.name;
        let Some(hidden) = self.hidden else {
            return false;
        };
        if self.take_removed_start(name, hidden.removed_starts) {
            return true;
        }
        let found =
            self.open_elements.iter().rposition(|open| *open == name).filter(|at| self.reaches(name, *at));
        match found {
            Some(at) if at >= hidden.open_elements => {
                self.open_elements.truncate(at);
                self.is_hidden_at(tag.end);
                return true;
            }
            // Formatting around the hidden element continues.
            _ if name.is(FORMATTING) => return true,
            Some(_) => {}
            None if self.is_removed_start(name, hidden.removed_starts) => {}
            None => return true,
        }
        self.end_hidden_at(start);
        false
    }

    /// Ends the hidden element; the text from the byte `at` on is kept.
    pub(super) fn end_hidden_at(&mut self, at: usize) {
        if let Some(hidden) = self.hidden.take() {
            self.open_elements.truncate(hidden.open_elements);
            self.removed_starts.truncate(hidden.removed_starts);
            self.copied_to = at;
        }
    }

    /// Drops a removed start tag inside the hidden element when its end tag occurs.
    fn take_removed_start(&mut self, name: TagName, first: usize) -> bool {
        let first = first.max(self.removed_starts.len().saturating_sub(MAX_UNMATCHED));
        let found = self.removed_starts.iter().skip(first).rposition(|other| *other == name);
        found.map(|at| self.removed_starts.remove(first + at)).is_some()
    }

    /// Whether one of the last start tags that were removed before the hidden element has this name.
    fn is_removed_start(&self, name: TagName, before: usize) -> bool {
        self.removed_starts.iter().take(before).rev().take(MAX_UNMATCHED).any(|other| *other == name)
    }
}

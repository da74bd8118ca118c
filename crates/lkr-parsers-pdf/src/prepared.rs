//! Prepares files without hidden text for engines that cannot detect all of it.

use std::{borrow::Cow, collections::HashSet, time::Duration};

use lkr_parsers::{Clock, Deadline, Source};

use crate::{
    error::guarded,
    lopdf::{LopdfDocument, PaintedAreas, PaleText, Scrubbed},
    page::Line,
};

/// The search for hidden text takes at most this fraction (1/n) of the time to the deadline.
const SHARE: u32 = 4;

/// The search for hidden text takes at most this long.
const MAX_TIME: Duration = Duration::from_mins(1);

/// A file without the hidden text that lopdf found.
pub(crate) struct PreparedFile<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// How many texts were removed.
    pub(crate) hidden: usize,
    /// The file as opened by lopdf, if it can open it.
    pub(crate) lopdf: Option<LopdfDocument>,
    /// Pages that were not checked and may contain hidden text.
    unchecked_pages: HashSet<usize>,
    /// Whether lopdf and the engine find different pages.
    pages_differ: bool,
    max_pages: usize,
}

impl<'a> PreparedFile<'a> {
    pub(crate) fn new(source: &Source<'a>, pale: PaleText, max_pages: usize) -> Self {
        let time = source.deadline.map_or(MAX_TIME, |deadline| deadline.time_left() / SHARE);
        let clock = source.deadline.map_or(Clock::Wall, Deadline::clock);
        let until = Deadline::after(clock, time.min(MAX_TIME));
        let lopdf = LopdfDocument::load(source.bytes, max_pages).ok();
        let scrubbed = lopdf.as_ref().map(|open| guarded(|| open.scrubbed(source.bytes, pale, Some(until))));
        let (bytes, unchecked_pages) = (Cow::Borrowed(source.bytes), HashSet::new());
        let pages_differ = !matches!(scrubbed, Some(Ok(_)));
        let mut prepared = Self { bytes, hidden: 0, lopdf, unchecked_pages, pages_differ, max_pages };
        if let Some(Ok(Scrubbed { bytes, hidden, unchecked_pages })) = scrubbed {
            prepared.bytes = bytes.map_or(prepared.bytes, Cow::Owned);
            (prepared.hidden, prepared.unchecked_pages) = (hidden, unchecked_pages);
        }
        prepared
    }

    /// Reverts to the original source if the engine does not find the same number of pages as lopdf. Returns whether it
    /// has to be reopened.
    pub(crate) fn revert_if_pages_differ(&mut self, source: &Source<'a>, pages: Option<usize>) -> bool {
        let max_count = self.max_pages.saturating_add(1);
        let count = self.lopdf.as_ref().map(LopdfDocument::page_count);
        self.pages_differ |=
            pages.map(|pages| pages.min(max_count)) != count.map(|count| count.min(max_count));
        let is_changed = self.pages_differ && matches!(self.bytes, Cow::Owned(_));
        if is_changed {
            (self.bytes, self.hidden) = (Cow::Borrowed(source.bytes), 0);
        }
        is_changed
    }

    /// Whether a page may still contain hidden text.
    pub(crate) fn is_unchecked(&self, index: usize) -> bool {
        self.pages_differ || self.unchecked_pages.contains(&index)
    }

    /// How many of the first `pages` pages may still contain hidden text.
    pub(crate) fn unchecked_pages(&self, pages: usize) -> usize {
        (0..pages).filter(|index| self.is_unchecked(*index)).count()
    }

    /// The values of the form fields that a page shows.
    pub(crate) fn field_values(&self, index: usize) -> Vec<Line> {
        self.lopdf_engine().map(|lopdf| lopdf.field_values(index)).unwrap_or_default()
    }

    /// How many bytes of visible text a page sets; 0 if lopdf did not interpret it.
    pub(crate) fn shown_text(&self, index: usize) -> usize {
        self.lopdf_engine().map_or(0, |lopdf| lopdf.shown_text(index))
    }

    /// lopdf's reading of the file, if it found the same pages as the engine.
    pub(crate) fn lopdf_engine(&self) -> Option<&LopdfDocument> {
        self.lopdf.as_ref().filter(|_| !self.pages_differ)
    }

    /// The painted areas of a page besides its text, if lopdf interpreted it.
    pub(crate) fn painted_areas(&self, index: usize) -> Option<PaintedAreas> {
        self.lopdf_engine()?.painted_areas(index)
    }
}

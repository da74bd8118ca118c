//! Files as engines get them that do not tell all hidden text: without it.

use std::{
    borrow::Cow,
    collections::HashSet,
    time::{Duration, Instant},
};

use lkr_parsers::Source;

use crate::{
    error::guarded,
    lopdf::{Ground, Open, Pale, Scrubbed},
};

/// Looking for hidden text takes this part of the time that there is.
const SHARE: u32 = 4;

/// The time that looking for hidden text takes at most.
const MOST: Duration = Duration::from_mins(1);

/// A file without the text that lopdf knows to be hidden.
pub(crate) struct Clean<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// How many texts were left out.
    pub(crate) hidden: usize,
    /// What lopdf makes of the file, if it can open it.
    pub(crate) lopdf: Option<Open>,
    /// Pages that may hold hidden text still, as they were not looked through.
    unchecked: HashSet<usize>,
    /// Whether lopdf has not the pages that the engine has.
    is_strange: bool,
    max_pages: usize,
}

impl<'a> Clean<'a> {
    pub(crate) fn new(source: &Source<'a>, pale: Pale, max_pages: usize) -> Self {
        let now = Instant::now();
        let time = source.deadline.map(|deadline| deadline.saturating_duration_since(now) / SHARE);
        let until = now + time.unwrap_or(MOST).min(MOST);
        let lopdf = Open::load(source.bytes, max_pages).ok();
        let scrubbed = lopdf.as_ref().map(|open| guarded(|| open.scrubbed(source.bytes, pale, Some(until))));
        let (bytes, unseen) = (Cow::Borrowed(source.bytes), HashSet::new());
        let is_strange = !matches!(scrubbed, Some(Ok(_)));
        let mut clean = Self { bytes, hidden: 0, lopdf, unchecked: unseen, is_strange, max_pages };
        if let Some(Ok(Scrubbed { bytes, hidden, unchecked })) = scrubbed {
            clean.bytes = bytes.map_or(clean.bytes, Cow::Owned);
            (clean.hidden, clean.unchecked) = (hidden, unchecked);
        }
        clean
    }

    /// Goes back to the source as it is, where the engine does not find the pages there that lopdf does, of which it has
    /// so many. Whether it has to be opened anew.
    pub(crate) fn settle(&mut self, source: &Source<'a>, pages: Option<usize>) -> bool {
        let most = self.max_pages.saturating_add(1);
        let count = self.lopdf.as_ref().map(Open::page_count);
        self.is_strange |= pages.map(|pages| pages.min(most)) != count.map(|count| count.min(most));
        let is_changed = self.is_strange && self.hidden > 0;
        if is_changed {
            (self.bytes, self.hidden) = (Cow::Borrowed(source.bytes), 0);
        }
        is_changed
    }

    /// Whether a page may hold hidden text still.
    pub(crate) fn is_unchecked(&self, index: usize) -> bool {
        self.is_strange || self.unchecked.contains(&index)
    }

    /// How many of so many pages may hold hidden text still.
    pub(crate) fn unchecked(&self, pages: usize) -> usize {
        (0..pages).filter(|index| self.is_unchecked(*index)).count()
    }

    /// What a page paints beside its text, if lopdf can tell.
    pub(crate) fn ground(&self, index: usize) -> Option<Ground> {
        self.lopdf.as_ref().filter(|_| !self.is_strange)?.ground(index)
    }
}

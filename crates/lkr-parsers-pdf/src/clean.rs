//! Files as engines get them that do not tell all hidden text: without it.

use std::borrow::Cow;

use lkr_parsers::Source;

use crate::{
    error::guarded,
    lopdf::{Look, Open, Scrubbed},
};

/// A file without the text that lopdf knows to be hidden.
pub(crate) struct Clean<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// How many texts were left out.
    pub(crate) hidden: usize,
    /// What lopdf makes of the file, if it can open it.
    pub(crate) lopdf: Option<Open>,
    /// Whether hidden text may be in it still, although lopdf can open it: nobody else should read it then.
    pub(crate) is_doubtful: bool,
}

impl<'a> Clean<'a> {
    pub(crate) fn new(source: &Source<'a>, look: Look, max_pages: usize) -> Self {
        let lopdf = Open::load(source.bytes, max_pages).ok();
        let scrub = |open: &Open| guarded(|| open.scrubbed(source, look));
        let (scrubbed, is_doubtful) = match lopdf.as_ref().map(scrub) {
            None => (None, false),
            Some(Ok(scrubbed)) => (scrubbed, false),
            Some(Err(_)) => (None, true),
        };
        let (bytes, hidden) = match scrubbed {
            Some(Scrubbed { bytes, hidden }) => (Cow::Owned(bytes), hidden),
            None => (Cow::Borrowed(source.bytes), 0),
        };
        Self { bytes, hidden, lopdf, is_doubtful }
    }

    /// What is to be read in place of the engine: where it could not be told what is hidden, and where the engine, for
    /// which the file has so many pages, has lost pages with it.
    pub(crate) fn instead(&self, pages: Option<usize>) -> Option<&Open> {
        let lopdf = self.lopdf.as_ref()?;
        let is_whole = || pages.is_some_and(|pages| pages >= lopdf.page_count());
        (self.is_doubtful || (self.hidden > 0 && !is_whole())).then_some(lopdf)
    }
}

//! Pages that an engine cannot read, read by the others.

use lkr_parsers::Result;

use super::{DocumentReader, Engine, visible_text};
use crate::{hidden::VisibilityChecks, legibility::Legibility, page::Page};

impl DocumentReader<'_> {
    /// The text of a page, from the first engine that can read it; `page` is what this engine read.
    pub(super) fn with_other_engines(
        &mut self,
        engine: &dyn Engine,
        index: usize,
        page: Result<Page>,
        checks: &mut VisibilityChecks,
    ) -> Result<Page> {
        let legibility = page.as_ref().map(Legibility::of).unwrap_or_default();
        let is_unsure = page.as_ref().is_ok_and(|page| page.is_unsure);
        let is_readable = if legibility.has_words() {
            !legibility.is_doubtful() && !is_unsure
        } else {
            page.is_ok() && engine.shown_text(index) == 0
        };
        if is_readable || self.faster_from.is_some() {
            return page;
        }
        for (name, other) in engine.other_engines() {
            let Ok(other_page) = visible_text(other, index, checks) else { continue };
            let other_legibility = Legibility::of(&other_page);
            let is_better = other_legibility.is_better_than(&legibility)
                || (is_unsure && other_legibility.is_as_good_as(&legibility));
            if is_better {
                *self.other_engines.entry(name).or_default() += 1;
                return Ok(other_page);
            }
        }
        page
    }

    pub(super) fn warn_of_other_engines(&mut self) {
        for (name, pages) in std::mem::take(&mut self.other_engines) {
            let one = format!("was read by {name}, which reads its text better");
            let many = format!("were read by {name}, which reads their text better");
            self.warn_pages(pages, &one, &many);
        }
        let unreadable = self.pages.iter().filter(|page| Legibility::of(page).is_unreadable()).count();
        self.warn_pages(
            unreadable,
            "has unreadable text: its fonts do not say which characters their letters are",
            "have unreadable text: their fonts do not say which characters their letters are",
        );
    }
}

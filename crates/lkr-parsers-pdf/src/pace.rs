//! When an engine has to leave the rest of a document to a faster one.

use std::time::{Duration, Instant};

use lkr_parsers::Source;

use crate::{error::guarded, read::Engine};

/// So many pages tell how fast the engine is; before that, this part of its time does.
const JUDGED: u32 = 16;

/// So many pages, evenly spread, tell how fast the faster engine is.
const TRIED: usize = 16;

/// Of the time that remains, one part in so many is kept beside that for the faster engine.
const SPARE: u32 = 16;

/// How fast the pages of a document are read, and what is left for a faster engine.
pub(crate) struct Pace<'a> {
    faster: Option<&'a dyn Engine>,
    pages: usize,
    started: Instant,
    /// What the faster engine takes for a page, once that was tried.
    each: Option<Duration>,
    is_late: bool,
}

impl<'a> Pace<'a> {
    /// The reading of so many pages begins.
    pub(crate) fn new(faster: Option<&'a dyn Engine>, pages: usize) -> Self {
        let faster = faster.filter(|faster| faster.pages() >= pages);
        Self { faster, pages, started: Instant::now(), each: None, is_late: false }
    }

    /// The faster engine, if it has to read all that follows the first `done` pages: as late as that is in time.
    pub(crate) fn faster(&mut self, source: &Source<'_>, done: usize) -> Option<&'a dyn Engine> {
        let (faster, deadline) = (self.faster?, source.deadline?);
        if !self.is_late {
            self.is_late = self.falls_late(faster, deadline, done);
        }
        self.is_late.then_some(faster)
    }

    fn falls_late(&mut self, faster: &dyn Engine, deadline: Instant, done: usize) -> bool {
        let (spent, rest) = (self.started.elapsed(), deadline.saturating_duration_since(Instant::now()));
        let (Ok(read), Ok(left)) = (u32::try_from(done), u32::try_from(self.pages.saturating_sub(done)))
        else {
            return false;
        };
        let judged = read >= JUDGED || spent > (spent + rest) / JUDGED;
        if read == 0 || !judged || (spent / read).saturating_mul(left) < rest {
            return false;
        }
        let each = *self.each.get_or_insert_with(|| tried(faster, done, self.pages));
        // Half as much again: pages are not alike, and a machine has other things to do too.
        let needed = each.saturating_mul(left);
        rest <= needed + needed / 2 + (spent + rest) / SPARE
    }
}

/// What the engine takes for a page, at most for so many of those from `first` to `end`.
fn tried(engine: &dyn Engine, first: usize, end: usize) -> Duration {
    let started = Instant::now();
    let step = (end.saturating_sub(first) / TRIED).max(1);
    let mut count = 0;
    for index in (first..end).step_by(step).take(TRIED) {
        // Only the time counts.
        let _ = guarded(|| engine.page(index));
        count += 1;
    }
    started.elapsed() / count.max(1)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use lkr_domain::Parsed;
    use lkr_parsers::Result;

    use super::*;
    use crate::{PdfOptions, outline::Entry, page::Page, read::read, render::PageRenderer};

    /// Reads every page as one word, and takes that long for it.
    struct Reader {
        word: &'static str,
        each: Duration,
        pages: usize,
        faster: Option<Box<Reader>>,
    }

    impl Engine for Reader {
        fn pages(&self) -> usize {
            self.pages
        }

        fn outline(&self) -> Vec<Entry> {
            vec![]
        }

        fn page(&self, _: usize) -> Result<Page> {
            sleep(self.each);
            Ok(Page::from_text(self.word))
        }

        fn second(&self, _: &[Page]) -> Option<Vec<Page>> {
            None
        }

        fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
            Err("not under test".to_owned())
        }

        fn faster(&self) -> Option<&dyn Engine> {
            Some(self.faster.as_deref()?)
        }
    }

    /// What comes of 300 pages of which there is time for some 100.
    fn hurried(faster_pages: usize, deadline: Duration) -> Parsed {
        let millis = Duration::from_millis;
        let faster =
            Reader { word: "fast", each: Duration::from_micros(100), pages: faster_pages, faster: None };
        let reader = Reader { word: "slow", each: millis(10), pages: 300, faster: Some(Box::new(faster)) };
        let source = Source { deadline: Some(Instant::now() + deadline), ..Source::new(b"") };
        read(&reader, &source, &PdfOptions::default()).unwrap()
    }

    #[test]
    fn a_faster_engine_reads_what_there_is_no_time_for() {
        let parsed = hurried(300, Duration::from_secs(1));
        let (slow, fast) = (parsed.text.matches("slow").count(), parsed.text.matches("fast").count());
        assert_eq!(slow + fast, 300, "{:?}", parsed.warnings);
        assert!(slow > 20, "{slow}");
        let expected = format!("pages {} to 300 were read by lopdf, as time was short", slow + 1);
        assert_eq!(parsed.warnings, [expected]);
    }

    #[test]
    fn no_faster_engine_is_asked_where_there_is_time_or_it_has_not_all_pages() {
        let parsed = hurried(300, Duration::from_mins(1));
        assert_eq!((parsed.text.matches("slow").count(), parsed.warnings.len()), (300, 0));
        let parsed = hurried(299, Duration::from_millis(300));
        assert!(!parsed.text.contains("fast"));
        assert!(matches!(&parsed.warnings[..], [warning] if warning.ends_with("pages were left out")));
    }
}

//! Decides when a faster engine has to read the rest of a document.

use std::time::Duration;

use lkr_parsers::{Clock, Deadline, Source};

use crate::{error::guarded, read::Engine};

/// The speed of the engine is judged after this many pages, or after one part in this many of its time.
const JUDGED_PAGES: u32 = 16;

/// The speed of the faster engine is measured with this many evenly spaced pages.
const MEASURED_PAGES: usize = 16;

/// One part in this many of the remaining time is reserved in addition.
const RESERVE_DIVISOR: u32 = 16;

/// Tracks the speed of an engine against the deadline.
pub(crate) struct Pacing<'a> {
    faster_engine: Option<&'a dyn Engine>,
    pages: usize,
    clock: Clock,
    started: Duration,
    /// The time of the faster engine for a page, once measured.
    time_per_page: Option<Duration>,
    is_late: bool,
}

impl<'a> Pacing<'a> {
    /// Starts to track the reading of this many pages of a source.
    pub(crate) fn new(source: &Source<'_>, faster_engine: Option<&'a dyn Engine>, pages: usize) -> Self {
        let clock = source.deadline.map_or(Clock::Wall, Deadline::clock);
        let faster_engine = faster_engine.filter(|faster_engine| faster_engine.pages() >= pages);
        Self { faster_engine, pages, clock, started: clock.now(), time_per_page: None, is_late: false }
    }

    /// The faster engine, if it has to read all pages after the first `done` ones. It takes over as late as possible.
    pub(crate) fn faster_engine(&mut self, source: &Source<'_>, done: usize) -> Option<&'a dyn Engine> {
        let (faster_engine, deadline) = (self.faster_engine?, source.deadline?);
        if !self.is_late {
            self.is_late = self.is_late_after(faster_engine, deadline, done);
        }
        self.is_late.then_some(faster_engine)
    }

    fn is_late_after(&mut self, faster_engine: &dyn Engine, deadline: Deadline, done: usize) -> bool {
        let (spent, rest) = (self.clock.now().saturating_sub(self.started), deadline.time_left());
        let (Ok(read), Ok(left)) = (u32::try_from(done), u32::try_from(self.pages.saturating_sub(done)))
        else {
            return false;
        };
        let is_judged = read >= JUDGED_PAGES || spent > (spent + rest) / JUDGED_PAGES;
        if read == 0 || !is_judged || (spent / read).saturating_mul(left) < rest {
            return false;
        }
        let time_per_page =
            *self.time_per_page.get_or_insert_with(|| measure(faster_engine, self.clock, done, self.pages));
        // Half as much again, because pages differ.
        let needed = time_per_page.saturating_mul(left);
        rest <= needed + needed / 2 + (spent + rest) / RESERVE_DIVISOR
    }
}

/// Measures the time of the engine for a page, with some of the pages from `first` to `end`.
fn measure(engine: &dyn Engine, clock: Clock, first: usize, end: usize) -> Duration {
    let started = clock.now();
    let step = (end.saturating_sub(first) / MEASURED_PAGES).max(1);
    let mut count = 0;
    for index in (first..end).step_by(step).take(MEASURED_PAGES) {
        // Only the time matters.
        let _ = guarded(|| engine.page(index));
        count += 1;
    }
    clock.now().saturating_sub(started) / count.max(1)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use lkr_domain::Parsed;
    use lkr_parsers::Result;

    use super::*;
    use crate::{PdfOptions, outline::Entry, page::Page, read::read, render::PageRenderer};

    /// Reads every page as one word in a fixed time.
    struct Reader {
        word: &'static str,
        time_per_page: Duration,
        pages: usize,
        faster_engine: Option<Box<Reader>>,
    }

    impl Engine for Reader {
        fn pages(&self) -> usize {
            self.pages
        }

        fn outline(&self) -> Vec<Entry> {
            vec![]
        }

        fn page(&self, _: usize) -> Result<Page> {
            sleep(self.time_per_page);
            Ok(Page::from_text(self.word))
        }

        fn fallback_pages(&self, _: &[Page]) -> Option<Vec<Page>> {
            None
        }

        fn renderer(&self) -> std::result::Result<&dyn PageRenderer, String> {
            Err("not under test".to_owned())
        }

        fn faster_engine(&self) -> Option<&dyn Engine> {
            Some(self.faster_engine.as_deref()?)
        }
    }

    /// Parses 300 pages within the time to the deadline, at 10 ms for a page.
    fn parse_with_deadline(faster_pages: usize, deadline: Duration) -> Parsed {
        let millis = Duration::from_millis;
        let faster_engine = Reader {
            word: "fast",
            time_per_page: Duration::from_micros(100),
            pages: faster_pages,
            faster_engine: None,
        };
        let reader = Reader {
            word: "slow",
            time_per_page: millis(10),
            pages: 300,
            faster_engine: Some(Box::new(faster_engine)),
        };
        let source =
            Source { deadline: Some(Deadline::after(Clock::Wall, deadline)), ..Source::new(b"startxref") };
        read(&reader, &source, &PdfOptions::default()).unwrap()
    }

    #[test]
    fn faster_engine_reads_the_rest_if_time_is_short() {
        let parsed = parse_with_deadline(300, Duration::from_secs(1));
        let (slow, fast) = (parsed.text.matches("slow").count(), parsed.text.matches("fast").count());
        assert_eq!(slow + fast, 300, "{:?}", parsed.warnings);
        assert!(slow > 20, "{slow}");
        let expected = format!("pages {} to 300 were read by lopdf because time was short", slow + 1);
        assert_eq!(parsed.warnings, [expected]);
    }

    #[test]
    fn faster_engine_is_not_used_with_enough_time_or_different_page_counts() {
        let parsed = parse_with_deadline(300, Duration::from_mins(1));
        assert_eq!((parsed.text.matches("slow").count(), parsed.warnings.len()), (300, 0));
        let parsed = parse_with_deadline(299, Duration::from_millis(300));
        assert!(!parsed.text.contains("fast"));
        assert!(matches!(&parsed.warnings[..], [warning] if warning.ends_with("pages were left out")));
    }
}

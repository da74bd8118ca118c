//! A limit on repeated warnings and errors in the log.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use tracing::{Event, Level, Metadata, Subscriber, callsite::Identifier};
use tracing_subscriber::layer::{Context, Filter};

/// The length of a window. Chosen, not measured. See docs/studies.md#limits-by-client.
const WINDOW: Duration = Duration::from_secs(10);

/// The most lines of one place in the code in a window. Chosen, not measured. See docs/studies.md#limits-by-client.
const MAX_LINES: u64 = 20;

/// Limits the warnings and errors of each place in the code, so that a client cannot fill the log with refused requests.
/// Lines beyond the limit are counted, and the counts are logged at the end of the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct LogLimiter {
    windows: Arc<Mutex<HashMap<Identifier, LineCount>>>,
}

/// The lines of one place in the code in the current window.
#[derive(Debug)]
struct LineCount {
    place: &'static Metadata<'static>,
    lines: u64,
}

/// A place in the code whose lines were left out of the log.
#[derive(Debug, PartialEq, Eq)]
struct Suppressed {
    target: &'static str,
    line: u32,
    count: u64,
}

impl LogLimiter {
    /// Logs after each window how many lines were left out. Never returns.
    pub(crate) async fn report(self) {
        let mut windows = tokio::time::interval_at(Instant::now() + WINDOW, WINDOW);
        loop {
            windows.tick().await;
            for Suppressed { target, line, count } in self.end_window() {
                tracing::warn!(
                    target,
                    line,
                    count,
                    window_s = WINDOW.as_secs(),
                    "similar log lines suppressed"
                );
            }
        }
    }

    /// Counts a line and returns whether it is logged.
    fn admit(&self, place: &'static Metadata<'static>) -> bool {
        if *place.level() > Level::WARN {
            return true;
        }
        let mut windows = self.windows();
        let count = windows.entry(place.callsite()).or_insert(LineCount { place, lines: 0 });
        count.lines += 1;
        count.lines <= MAX_LINES
    }

    /// Starts a new window and returns what the old one left out.
    fn end_window(&self) -> Vec<Suppressed> {
        let suppressed = |count: LineCount| {
            let left_out = count.lines.checked_sub(MAX_LINES).filter(|left_out| *left_out > 0)?;
            let (target, line) = (count.place.target(), count.place.line().unwrap_or_default());
            Some(Suppressed { target, line, count: left_out })
        };
        self.windows().drain().filter_map(|(_, count)| suppressed(count)).collect()
    }

    fn windows(&self) -> MutexGuard<'_, HashMap<Identifier, LineCount>> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Filter<S> for LogLimiter {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admit(event.metadata())
    }
}

#[cfg(test)]
mod tests {
    use std::{io, sync::mpsc};

    use tracing_subscriber::{Layer as _, fmt, layer::SubscriberExt as _};

    use super::*;

    /// Sends each line to a channel.
    #[derive(Clone)]
    struct Lines(mpsc::Sender<String>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn repeated_warnings_are_suppressed_and_counted_by_place() {
        let (sender, receiver) = mpsc::channel();
        let (limiter, lines) = (LogLimiter::default(), Lines(sender));
        let layer = fmt::layer().with_writer(move || lines.clone()).with_filter(limiter.clone());
        let subscriber = tracing_subscriber::registry().with(layer);
        tracing::subscriber::with_default(subscriber, || {
            for n in 0..100 {
                tracing::warn!(n, "search refused");
                tracing::info!(n, "request");
            }
            tracing::error!("disk full");
        });
        let logged: Vec<String> = receiver.try_iter().collect();
        let count = |text: &str| logged.iter().filter(|line| line.contains(text)).count() as u64;
        assert_eq!((count("search refused"), count("request"), count("disk full")), (MAX_LINES, 100, 1));
        let suppressed = limiter.end_window();
        assert_eq!(suppressed.iter().map(|place| place.count).collect::<Vec<_>>(), [100 - MAX_LINES]);
        assert!(limiter.end_window().is_empty());
    }
}

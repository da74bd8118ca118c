//! Writes log lines on a thread of its own, so that a reader of stderr that stalls (a full pipe, a terminal that is paused)
//! stops no request. Lines wait in memory up to a limit; those beyond it are dropped and counted.

use std::{
    io,
    mem::{replace, take},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

use crate::metrics::Counters;

/// The most bytes that wait: some twenty thousand lines. Chosen, not measured.
const MAX_WAITING: usize = 4 << 20;

/// How long the first line waits for others, so that a busy server writes many at once and wakes the thread once for them. See
/// docs/studies.md#log-lines.
const GATHERING_PAUSE: Duration = Duration::from_millis(2);

/// How often dropped lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// A buffer that grew beyond this while the reader stalled is given back.
const KEPT_CAPACITY: usize = 64 << 10;

/// Hands lines to the thread.
#[derive(Debug, Clone)]
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    waiting: Mutex<Waiting>,
    max_waiting: usize,
    /// Wakes the thread when the first line waits.
    filled: Condvar,
    /// Wakes those who wait until all lines are written.
    written: Condvar,
    dropped: AtomicU64,
}

/// The lines that are not written yet.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Whether the thread is writing lines that it took.
    is_writing: bool,
}

impl LogWriter {
    /// Starts the thread, which lives as long as the process.
    ///
    /// # Errors
    /// That the system has no thread left.
    pub(crate) fn start(to: impl io::Write + Send + 'static) -> io::Result<Self> {
        Self::with_limit(to, MAX_WAITING)
    }

    fn with_limit(to: impl io::Write + Send + 'static, max_waiting: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            max_waiting,
            filled: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let writing = Arc::clone(&shared);
        thread::Builder::new().name("log-writer".to_owned()).spawn(move || writing.write_all(to))?;
        Ok(Self { shared })
    }

    /// Waits until all lines are written, for no longer than `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let is_behind = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        // Whether it is in time makes no difference: the process ends.
        let _ = self.shared.written.wait_timeout_while(self.shared.waiting(), limit, is_behind);
    }

    /// Counts and logs, now and then, how many lines were dropped. Never returns.
    pub(crate) async fn report_dropped(self, counter: Counters) {
        let mut reported = 0;
        let mut intervals = tokio::time::interval(REPORT_INTERVAL);
        loop {
            let dropped = self.dropped();
            if dropped > reported {
                let lines = dropped - reported;
                counter.add(&[], lines as f64);
                tracing::warn!(lines, "log lines were dropped: what reads stderr does not keep up");
                reported = dropped;
            }
            intervals.tick().await;
        }
    }

    /// How many lines were dropped since the start.
    fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting();
        if waiting.lines.len() + line.len() > self.max_waiting {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let is_first = waiting.lines.is_empty();
        waiting.lines.extend_from_slice(line);
        drop(waiting);
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Writes lines as they come. Never returns.
    fn write_all(&self, mut to: impl io::Write) {
        let mut spare = Vec::new();
        loop {
            let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty();
            drop(self.filled.wait_while(self.waiting(), is_idle));
            thread::sleep(GATHERING_PAUSE);
            let mut waiting = self.waiting();
            let mut lines = replace(&mut waiting.lines, take(&mut spare));
            waiting.is_writing = true;
            drop(waiting);
            // With stderr closed there is nowhere to report to.
            let _ = to.write_all(&lines).and_then(|()| to.flush());
            lines.clear();
            lines.shrink_to(KEPT_CAPACITY);
            spare = lines;
            self.waiting().is_writing = false;
            self.written.notify_all();
        }
    }
}

/// Takes one line.
impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.shared.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogWriter {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _, pipe};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn lines_are_written_whole_and_in_order() {
        let (mut reader, writer) = pipe().unwrap();
        let log = LogWriter::start(writer).unwrap();
        let mut expected = String::new();
        for number in 0..5_000 {
            let line = format!("line {number}\n");
            log.clone().write_all(line.as_bytes()).unwrap();
            expected.push_str(&line);
        }
        let mut read = vec![0; expected.len()];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), expected);
        log.flush(LIMIT);
        assert_eq!((log.dropped(), log.shared.waiting().lines.len()), (0, 0));
    }

    #[test]
    fn reader_that_stalls_stops_nobody_and_the_lines_beyond_the_limit_are_counted() {
        const LINE: [u8; 1 << 10] = [b'x'; 1 << 10];
        let (mut reader, writer) = pipe().unwrap();
        let log = LogWriter::with_limit(writer, 64 * LINE.len()).unwrap();
        // More than the pipe and the limit hold, even if a part is taken while the rest arrives.
        let lines = 4_096;
        for _ in 0..lines {
            log.clone().write_all(&LINE).unwrap();
        }
        log.flush(Duration::from_millis(10));
        let dropped = log.dropped();
        assert!(dropped > 0);
        // Once the reader goes on, it gets all others, and new lines.
        let mut kept = vec![0; (lines - usize::try_from(dropped).unwrap()) * LINE.len()];
        reader.read_exact(&mut kept).unwrap();
        assert!(kept.iter().all(|byte| *byte == b'x'));
        log.clone().write_all(b"last\n").unwrap();
        let mut last = [0; 5];
        reader.read_exact(&mut last).unwrap();
        assert_eq!((&last, log.dropped()), (b"last\n", dropped));
    }
}

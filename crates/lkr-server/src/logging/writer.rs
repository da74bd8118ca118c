//! Writes log lines without ever waiting for what reads them: a full pipe or a paused terminal would stop all requests, and the
//! end of the server. A line is written at once if it can be; while one cannot, it and those after it wait in memory up to a
//! limit, and a thread writes them. Lines beyond the limit are dropped and counted.

use std::{
    fs::File,
    io::{self, Write as _},
    mem::take,
    os::fd::AsFd,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tracing_subscriber::fmt::MakeWriter;

use crate::metrics::Counters;

/// The most bytes that wait: some twenty thousand lines. Chosen, not measured.
const MAX_WAITING: usize = 4 << 20;

/// What a pipe that says that it can be written to takes without waiting, on every Unix (`_POSIX_PIPE_BUF`) and on Linux.
const MAX_AT_ONCE: usize = if cfg!(target_os = "linux") { 4_096 } else { 512 };

/// How often dropped lines are reported.
const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// Takes lines.
#[derive(Debug, Clone)]
pub(crate) struct LogWriter {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Not the handle of the standard library, which a thread that panics locks while it prints.
    to: File,
    waiting: Mutex<Waiting>,
    max_waiting: usize,
    /// Wakes the thread when the first line waits.
    filled: Condvar,
    /// Wakes those who wait until all lines are written.
    written: Condvar,
    dropped: AtomicU64,
}

/// The lines that could not be written at once.
#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    /// Whether the thread is writing lines that it took.
    is_writing: bool,
}

impl Waiting {
    const fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.is_writing
    }
}

impl LogWriter {
    /// A writer to a file, and its thread, which lives as long as the process.
    ///
    /// # Errors
    /// That the system has no file or thread left.
    pub(crate) fn start(to: impl AsFd) -> io::Result<Self> {
        Self::with_limit(to, MAX_WAITING)
    }

    fn with_limit(to: impl AsFd, max_waiting: usize) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            to: to.as_fd().try_clone_to_owned()?.into(),
            waiting: Mutex::default(),
            max_waiting,
            filled: Condvar::new(),
            written: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let writing = Arc::clone(&shared);
        thread::Builder::new().name("log-writer".to_owned()).spawn(move || writing.write_waiting())?;
        Ok(Self { shared })
    }

    /// Waits until all lines are written, for no longer than `limit`.
    pub(crate) fn flush(&self, limit: Duration) {
        let is_behind = |waiting: &mut Waiting| !waiting.is_empty();
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

    fn write_line(&self, line: &[u8]) {
        // Held while the line is written, so that lines stay whole and in order.
        let mut waiting = self.waiting();
        if waiting.is_empty() && line.len() <= MAX_AT_ONCE && self.takes_bytes() {
            self.write(line);
            return;
        }
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

    /// Whether a short write returns at once: it succeeds, or fails because the reader is gone.
    fn takes_bytes(&self) -> bool {
        let polled = poll(&mut [PollFd::new(&self.to, PollFlags::OUT)], Some(&Timespec::default()));
        polled != Ok(0)
    }

    fn write(&self, lines: &[u8]) {
        // With stderr closed there is nowhere to report to.
        let _ = (&self.to).write_all(lines);
    }

    /// Writes the lines that wait. Never returns.
    fn write_waiting(&self) {
        loop {
            let is_idle = |waiting: &mut Waiting| waiting.lines.is_empty();
            let waiting = self.filled.wait_while(self.waiting(), is_idle);
            let mut waiting = waiting.unwrap_or_else(PoisonError::into_inner);
            let lines = take(&mut waiting.lines);
            waiting.is_writing = true;
            drop(waiting);
            self.write(&lines);
            self.waiting().is_writing = false;
            self.written.notify_all();
        }
    }
}

/// Takes one line.
impl io::Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.shared.write_line(line);
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
    fn lines_are_written_at_once_while_they_are_read() {
        let file = tempfile::tempfile().unwrap();
        let (mut reader, writer) = pipe().unwrap();
        let logs = [LogWriter::start(&file).unwrap(), LogWriter::start(&writer).unwrap()];
        drop(writer);
        for number in 0..20 {
            for log in &logs {
                log.clone().write_all(format!("line {number}\n").as_bytes()).unwrap();
                assert!(log.shared.waiting().is_empty());
            }
            let mut read = vec![0; format!("line {number}\n").len()];
            reader.read_exact(&mut read).unwrap();
        }
        assert_eq!(file.metadata().unwrap().len(), 10 * 7 + 10 * 8);
    }

    #[test]
    fn lines_are_written_whole_and_in_order() {
        let (mut reader, writer) = pipe().unwrap();
        let log = LogWriter::start(writer).unwrap();
        let mut expected = String::new();
        for number in 0..5_000 {
            // One of them is longer than what a pipe takes at once.
            let line = format!("line {number}{}\n", " long".repeat(if number == 2_500 { 5_000 } else { 1 }));
            log.clone().write_all(line.as_bytes()).unwrap();
            expected.push_str(&line);
        }
        let mut read = vec![0; expected.len()];
        reader.read_exact(&mut read).unwrap();
        assert_eq!(String::from_utf8(read).unwrap(), expected);
        log.flush(LIMIT);
        assert!(log.dropped() == 0 && log.shared.waiting().is_empty());
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

    #[test]
    fn reader_that_is_gone_is_no_reason_to_wait() {
        let (reader, writer) = pipe().unwrap();
        let log = LogWriter::start(writer).unwrap();
        drop(reader);
        log.clone().write_all(b"nobody reads this\n").unwrap();
        assert!(log.shared.waiting().is_empty());
    }
}

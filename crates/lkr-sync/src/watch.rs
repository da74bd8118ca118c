//! Running again when the folder changes.

use std::{
    ffi::OsStr,
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use notify::{Config, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::{FolderSync, Observer, Result, WatchOptions, error::watch_error, folder::OWN_FOLDER};

/// How long a request to stop may take to be noticed.
const STOP_CHECK: Duration = Duration::from_millis(200);

/// Why a run is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trigger {
    /// The watch began.
    Start,
    /// Files changed.
    Changed,
    /// Changes may have been missed, or no change was seen for a long time.
    Rescan,
    /// The time of [`Next::RetryIn`] is over.
    Retry,
}

/// What follows after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait for the next change.
    Watch,
    /// Run again after this time, or at the next change.
    RetryIn(Duration),
    /// Stop watching.
    Stop,
}

impl FolderSync {
    /// Calls `run` at once, and again after each change of the folder, until it returns [`Next::Stop`] or the observer asks
    /// to stop. No change is missed between two runs: one that happens during a run triggers the next.
    ///
    /// The kind of an error is `Watch`: the system cannot watch so many folders, or none on this file system.
    pub fn watch(
        &mut self,
        options: WatchOptions,
        observer: &dyn Observer,
        run: &mut dyn FnMut(&mut Self, Trigger) -> Next,
    ) -> Result<()> {
        let (_watcher, events) = start(self.root())?;
        let mut trigger = Trigger::Start;
        while !observer.is_stopped() {
            let retry = match run(self, trigger) {
                Next::Watch => None,
                Next::RetryIn(time) => Some(time),
                Next::Stop => break,
            };
            match wait(&events, Pending::new(options, retry, Instant::now()), observer) {
                Some(next) => trigger = next,
                None => break,
            }
        }
        Ok(())
    }
}

/// What was seen in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Change,
    Lost,
}

fn start(root: &Path) -> Result<(RecommendedWatcher, Receiver<Seen>)> {
    let (sender, receiver) = mpsc::channel();
    let below = root.to_path_buf();
    let handler = move |event: notify::Result<Event>| {
        if let Some(seen) = seen(&below, &event) {
            // The receiver is gone when the watch ends.
            let _ = sender.send(seen);
        }
    };
    let config = Config::default().with_follow_symlinks(false);
    let mut watcher = RecommendedWatcher::new(handler, config).map_err(watch_error)?;
    watcher.watch(root, RecursiveMode::Recursive).map_err(watch_error)?;
    Ok((watcher, receiver))
}

/// What an event means. Reading files and the own files of this crate and of git change nothing.
fn seen(root: &Path, event: &notify::Result<Event>) -> Option<Seen> {
    let Ok(event) = event else { return Some(Seen::Lost) };
    if event.need_rescan() {
        return Some(Seen::Lost);
    }
    let is_own = |path: &Path| {
        let relative = path.strip_prefix(root).unwrap_or(path);
        relative.iter().any(|part| part == OsStr::new(OWN_FOLDER) || part == OsStr::new(".git"))
    };
    let is_read = matches!(event.kind, EventKind::Access(_));
    let all_own = !event.paths.is_empty() && event.paths.iter().all(|path| is_own(path));
    (!is_read && !all_own).then_some(Seen::Change)
}

/// Waits until a run is due; `None` if the observer asks to stop.
fn wait(events: &Receiver<Seen>, mut pending: Pending, observer: &dyn Observer) -> Option<Trigger> {
    loop {
        if observer.is_stopped() {
            return None;
        }
        let now = Instant::now();
        let (due, trigger) = pending.due();
        if due <= now {
            return Some(trigger);
        }
        match events.recv_timeout(due.saturating_duration_since(now).min(STOP_CHECK)) {
            Ok(seen) => pending.note(seen, Instant::now()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Some(Trigger::Rescan),
        }
    }
}

/// The changes since the last run.
#[derive(Debug, Clone, Copy)]
struct Pending {
    options: WatchOptions,
    /// When a run is due without any change, and why.
    otherwise: (Instant, Trigger),
    first: Option<Instant>,
    last: Option<Instant>,
    is_lost: bool,
}

impl Pending {
    fn new(options: WatchOptions, retry: Option<Duration>, now: Instant) -> Self {
        let otherwise = match retry {
            Some(time) => (now + time, Trigger::Retry),
            None => (now + options.rescan, Trigger::Rescan),
        };
        Self { options, otherwise, first: None, last: None, is_lost: false }
    }

    fn note(&mut self, seen: Seen, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.is_lost |= seen == Seen::Lost;
    }

    /// When the next run is due, and why.
    fn due(&self) -> (Instant, Trigger) {
        let (Some(first), Some(last)) = (self.first, self.last) else { return self.otherwise };
        let due = (last + self.options.quiet).min(first + self.options.at_most);
        (due, if self.is_lost { Trigger::Rescan } else { Trigger::Changed })
    }
}

#[cfg(test)]
mod tests;

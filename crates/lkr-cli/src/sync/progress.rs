//! The progress of a synchronisation, for a person in a terminal.

use std::{cell::RefCell, time::Instant};

use indicatif::ProgressBar;
use lkr_sync::{Event, Observer, TimeLeft};

use super::print;
use crate::terminal::{Bar, Output, plural, size, spinner};

/// Shows what happens: a spinner until it is known what is to be sent, then a bar with the time left.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    output: &'a Output,
    shown: RefCell<Shown>,
    /// Whether each path is printed as it is done.
    lists_files: bool,
}

#[derive(Debug)]
enum Shown {
    Spinner(ProgressBar),
    Sending(Sending),
    Nothing,
}

/// Files that are sent.
#[derive(Debug)]
struct Sending {
    bar: Bar,
    started: Instant,
    left: TimeLeft,
    done: u64,
    total: u64,
}

impl<'a> Progress<'a> {
    pub(super) fn new(output: &'a Output, lists_files: bool) -> Self {
        let shown = RefCell::new(Shown::Spinner(spinner(output, "comparing")));
        Self { output, shown, lists_files }
    }

    /// Removes what is shown.
    pub(super) fn finish(&self) {
        match self.shown.replace(Shown::Nothing) {
            Shown::Spinner(spinner) => spinner.finish_and_clear(),
            Shown::Sending(sending) => sending.bar.finish(),
            Shown::Nothing => {}
        }
    }

    /// Prints what was done about a path, if that is wanted.
    fn list(&self, sign: &str, path: &str, more: &str) {
        if !self.lists_files {
            return;
        }
        // An output that is closed does not stop the synchronisation.
        let print = || drop(print::line(self.output, sign, path, more));
        match &*self.shown.borrow() {
            Shown::Spinner(spinner) => spinner.suspend(print),
            Shown::Sending(sending) => sending.bar.suspend(print),
            Shown::Nothing => print(),
        }
    }

    fn say(&self, text: String) {
        if let Shown::Spinner(spinner) = &*self.shown.borrow() {
            spinner.set_message(text);
        }
    }

    fn begin_round(&self, files: u64, bytes: u64) {
        if files == 0 {
            return;
        }
        if let Shown::Sending(sending) = &mut *self.shown.borrow_mut() {
            sending.left.add(files, bytes);
            sending.total += files;
            sending.bar.set_total(sending.total);
            return;
        }
        self.finish();
        let bar = Bar::new(self.output, files, "files");
        let (started, left) = (Instant::now(), TimeLeft::new(files, bytes));
        *self.shown.borrow_mut() = Shown::Sending(Sending { bar, started, left, done: 0, total: files });
    }

    fn end_file(&self, bytes: u64) {
        if let Shown::Sending(sending) = &mut *self.shown.borrow_mut() {
            sending.done += 1;
            sending.left.done(sending.started.elapsed(), bytes);
            sending.bar.update(sending.done, sending.left.left());
        }
    }
}

impl Observer for Progress<'_> {
    fn event(&self, event: &Event<'_>) {
        match *event {
            Event::Waiting { tasks } => {
                self.say(format!("waiting for {} of an earlier run", plural(tasks as u64, "task")));
            }
            Event::Walked { files, to_hash, bytes } => {
                let files = plural(files as u64, "file");
                self.say(format!("{files}; reading {} that may have changed, {}", to_hash, size(bytes)));
            }
            Event::Round { files, bytes, .. } => self.begin_round(files as u64, bytes),
            Event::Done { path, bytes, replaces } => {
                self.list(if replaces { "changed" } else { "new" }, path, "");
                self.end_file(bytes);
            }
            Event::Moved { from, to } => self.list("moved", to, &format!("  from {from}")),
            Event::Deleted { path } => self.list("deleted", path, ""),
            Event::Refused { bytes, .. } => self.end_file(bytes),
            Event::Failed { bytes, .. } if bytes > 0 => self.end_file(bytes),
            _ => {}
        }
    }
}

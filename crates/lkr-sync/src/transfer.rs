//! Sending files, and waiting for the tasks that process them.

use std::{
    collections::{BTreeMap, VecDeque},
    path::Path,
    sync::mpsc::{Receiver, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use crate::{
    ApplyOptions, CheckedFile, Error, ErrorKind, FILE_SHA256, Observer, PlannedUpload, Remote, Result,
    TaskId, TaskState, Upload, error::stopped, path, workers, workers::Window,
};

/// The pauses between two rounds of questions about tasks; they grow while nothing ends.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(10);
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);
/// A round ends after this many tasks that have not ended. The others are asked about in the next one, because a large
/// file may take long while later ones are finished.
const UNFINISHED_IN_A_ROUND: usize = 8;

/// What became of a file.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The service accepted it. Another outcome follows.
    Sent,
    /// Its document is visible.
    Done,
    /// The service refuses these bytes.
    Refused(String),
    /// It was not stored for another reason.
    Failed(String),
    /// The service may process it, but does not tell. The next listing shows what became of it.
    Lost(Error),
    /// It is not the file any more that was planned.
    Changed,
}

/// Where files are read and sent to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub(crate) root: &'a Path,
    pub(crate) source_prefix: &'a str,
    pub(crate) remote: &'a dyn Remote,
    pub(crate) options: ApplyOptions,
}

/// Receives the outcomes of files.
pub(crate) type OnOutcome<'a> = &'a mut dyn FnMut(&PlannedUpload, Outcome) -> Result<()>;

/// The next longer pause.
pub(crate) fn longer(pause: Duration) -> Duration {
    (pause * 3 / 2).min(PAUSE_MAX)
}

impl Transfer<'_> {
    /// Sends all files and waits until their tasks ended.
    pub(crate) fn send(
        &self,
        uploads: &[PlannedUpload],
        observer: &dyn Observer,
        on_outcome: OnOutcome<'_>,
    ) -> Result<()> {
        let window = Window::new(uploads.len(), self.options.window);
        let work = |item| uploads.get(item).map(|upload| self.upload(upload));
        workers::run(&window, self.options.parallel, work, |results| {
            let tasks = VecDeque::new();
            Coordinator { remote: self.remote, observer, uploads, window: &window, tasks, on_outcome }
                .run(results)
        })
    }

    /// Sends one file: the id of its task, or what became of it at once.
    fn upload(&self, upload: &PlannedUpload) -> Result<TaskId, Error> {
        let file = CheckedFile::new(path::below(self.root, &upload.path), upload.size, upload.digest);
        let metadata = BTreeMap::from([(FILE_SHA256.to_owned(), upload.digest.to_string())]);
        let source = format!("{}{}", self.source_prefix, upload.path);
        let file_name = path::file_name(&upload.path);
        let sent = self.remote.upload(&Upload { source: &source, file_name, metadata, file: &file });
        sent.map_err(|error| if file.has_changed() { changed(&error) } else { error })
    }
}

/// Marks an error as the consequence of a changed file. Services do not answer uploads with `Folder`.
fn changed(error: &Error) -> Error {
    Error::new(ErrorKind::Folder, "send file", error.to_string())
}

/// Receives the results of the threads, and asks about tasks.
struct Coordinator<'a> {
    remote: &'a dyn Remote,
    observer: &'a dyn Observer,
    uploads: &'a [PlannedUpload],
    window: &'a Window,
    tasks: VecDeque<(usize, TaskId)>,
    on_outcome: OnOutcome<'a>,
}

type Sent = (usize, Option<Result<TaskId>>);

impl Coordinator<'_> {
    fn run(&mut self, results: &Receiver<Sent>) -> Result<()> {
        let (mut pause, mut next_round) = (PAUSE_MIN, Instant::now() + PAUSE_MIN);
        loop {
            if self.observer.is_stopped() {
                return Err(stopped());
            }
            match results.recv_timeout(next_round.saturating_duration_since(Instant::now())) {
                Ok(sent) => self.receive(sent)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) if self.tasks.is_empty() => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => {
                    thread::sleep(next_round.saturating_duration_since(Instant::now()));
                }
            }
            if Instant::now() >= next_round {
                pause = if self.ask()? { PAUSE_MIN } else { longer(pause) };
                next_round = Instant::now() + pause;
            }
        }
    }

    fn receive(&mut self, (item, sent): Sent) -> Result<()> {
        match sent {
            None => Ok(()),
            Some(Ok(task)) => {
                self.tasks.push_back((item, task));
                self.tell(item, Outcome::Sent)
            }
            Some(Err(error)) => self.end(item, outcome_of(error)?),
        }
    }

    /// Asks about tasks, those first that were not asked about for the longest time. Returns whether one ended.
    fn ask(&mut self) -> Result<bool> {
        let (mut unfinished, mut has_ended) = (0, self.tasks.is_empty());
        for _ in 0..self.tasks.len() {
            if unfinished == UNFINISHED_IN_A_ROUND {
                break;
            }
            let Some((item, task)) = self.tasks.pop_front() else { break };
            match self.remote.task(&task) {
                Ok(TaskState::Unfinished) => {
                    unfinished += 1;
                    self.tasks.push_back((item, task));
                }
                ended => {
                    has_ended = true;
                    self.end(item, outcome_of_task(ended)?)?;
                }
            }
        }
        Ok(has_ended)
    }

    fn end(&mut self, item: usize, outcome: Outcome) -> Result<()> {
        self.window.release();
        self.tell(item, outcome)
    }

    fn tell(&mut self, item: usize, outcome: Outcome) -> Result<()> {
        self.uploads.get(item).map_or(Ok(()), |upload| (self.on_outcome)(upload, outcome))
    }
}

/// What an error means for one file; errors that concern all files are returned.
fn outcome_of(error: Error) -> Result<Outcome> {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Stopped => Err(error),
        ErrorKind::Folder => Ok(Outcome::Changed),
        ErrorKind::Refused => Ok(Outcome::Refused(error.reason())),
        _ => Ok(Outcome::Lost(error)),
    }
}

fn outcome_of_task(state: Result<TaskState>) -> Result<Outcome> {
    match state {
        Ok(TaskState::Refused(reason)) => Ok(Outcome::Refused(reason)),
        Ok(TaskState::Failed(reason)) => Ok(Outcome::Failed(reason)),
        Ok(TaskState::Done | TaskState::Unfinished) => Ok(Outcome::Done),
        Err(error) if error.kind() == ErrorKind::Unavailable => Err(error),
        Err(error) => Ok(Outcome::Lost(error)),
    }
}

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
    thread,
};

use crate::{
    ApplyOptions, Error, ErrorKind, Event, Observer, Opening, Options, Plan, Remote, RemoteDocument, Report,
    Result, apply,
    error::{READ, stopped},
    folder::Folder,
    path, plan,
    plan::StoredDocument,
    scan,
    state::State,
    transfer::{PAUSE_MIN, longer},
    walk::{self, Walked, Wanted},
};

/// The most characters of a document's source.
const MAX_SOURCE_CHARS: usize = 4_096;

/// A folder that is synchronised with one target. It is locked until this is dropped.
#[derive(Debug)]
pub struct FolderSync {
    folder: Folder,
    options: Options,
    state: State,
}

impl FolderSync {
    /// Locks a folder and reads what is known about it.
    ///
    /// `Busy` if another process synchronises it, `MovedOrCopied` if it was synchronised in another place, it cannot be
    /// seen whether it was moved or copied from there, and [`Options::identity`] is `None`.
    pub fn open(folder: &Path, options: Options) -> Result<Self> {
        let folder = Folder::open(folder, &options)?;
        let state = state_of(&folder, &options)?;
        Ok(Self { folder, options, state })
    }

    /// Reads what is known about a folder, and keeps what is found from then on in memory.
    pub(crate) fn inspect(folder: &Path, options: Options) -> Result<Self> {
        let folder = Folder::inspect(folder, &options)?;
        let state = state_of(&folder, &options)?.in_memory();
        Ok(Self { folder, options, state })
    }

    /// How the folder was found.
    #[must_use]
    pub fn opening(&self) -> &Opening {
        self.folder.opening()
    }

    /// The id of the folder: 16 hexadecimal digits.
    #[must_use]
    pub fn id(&self) -> &str {
        self.folder.id()
    }

    /// What the source of each document of this folder begins with.
    #[must_use]
    pub fn source_prefix(&self) -> String {
        self.folder.source_prefix()
    }

    /// The canonical path of the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.root()
    }

    /// Compares the folder with its documents. If a run was interrupted, this first waits until the service has no
    /// unfinished tasks.
    pub fn plan(&mut self, remote: &dyn Remote, observer: &dyn Observer) -> Result<Plan> {
        if !self.state.is_clean() {
            wait_for_tasks(remote, observer)?;
            self.state.end_changes()?;
        }
        self.compare(remote, observer, self.options.retry_refused, &HashMap::new())
    }

    /// Carries out a plan, and repeats what changed or failed meanwhile, in three rounds at most. Deletes come last. Later
    /// rounds delete only documents that the plan deletes, and duplicates.
    ///
    /// After an error, the next run goes on.
    pub fn apply(
        &mut self,
        plan: Plan,
        remote: &dyn Remote,
        options: ApplyOptions,
        observer: &dyn Observer,
    ) -> Result<Report> {
        apply::Run::new(self, remote, observer, options, &plan).run(plan)
    }

    pub(crate) fn compare(
        &mut self,
        remote: &dyn Remote,
        observer: &dyn Observer,
        retry_refused: bool,
        unmovable: &HashMap<String, String>,
    ) -> Result<Plan> {
        self.folder.check_present()?;
        let mut walked = walk::walk(self.folder.root(), self.wanted())?;
        let hashed = scan::read_changed(self.folder.root(), &mut walked, &mut self.state, observer)?;
        forget_missing(&mut self.state, &walked);
        self.state.save()?;
        let stored = stored_documents(remote, &self.source_prefix())?;
        self.refuse_empty_place(&walked, stored.len())?;
        let local = scan::local_files(&walked, &self.state, retry_refused);
        let inputs =
            plan::Inputs { local: &local, stored: &stored, unreadable: &walked.unreadable, unmovable };
        let mut plan = plan::make(inputs);
        plan.hashed = hashed;
        plan.issues.extend(walked.issues);
        plan.issues.sort();
        Ok(plan)
    }

    /// Fails if the folder is empty, as a disk that is not mounted, and only the id that the caller gave says that the documents are
    /// those of its files.
    fn refuse_empty_place(&self, walked: &Walked, documents: usize) -> Result<()> {
        let is_empty =
            walked.files.is_empty() && walked.unsendable.is_empty() && walked.unreadable.is_empty();
        if self.options.id.is_none() || !is_empty || self.state.has_had_files() || documents == 0 {
            return Ok(());
        }
        let reason = format!(
            "{} has no files, and none were ever synchronised from it, but {documents} documents have its id: its disk may not be \
             mounted; if they are no longer wanted, delete them otherwise",
            self.folder.root().display()
        );
        Err(Error::new(ErrorKind::Folder, READ, reason))
    }

    fn wanted(&self) -> Wanted<'_> {
        let max_path_chars = MAX_SOURCE_CHARS - self.source_prefix().len().min(MAX_SOURCE_CHARS);
        Wanted { extensions: &self.options.extensions, max_bytes: self.options.max_bytes, max_path_chars }
    }

    pub(crate) fn state(&mut self) -> &mut State {
        &mut self.state
    }
}

fn state_of(folder: &Folder, options: &Options) -> Result<State> {
    // Another folder may have been interrupted under an id that is given.
    let is_new = options.id.is_none() && matches!(folder.opening(), Opening::New | Opening::Copied { .. });
    State::open(folder.state_file(&options.target), folder.id(), &options.target, is_new)
}

/// Waits until the service has no unfinished tasks.
pub(crate) fn wait_for_tasks(remote: &dyn Remote, observer: &dyn Observer) -> Result<()> {
    let (mut pause, mut before) = (PAUSE_MIN, usize::MAX);
    loop {
        let tasks = remote.unfinished_tasks()?;
        if tasks == 0 {
            return Ok(());
        }
        observer.event(&Event::Waiting { tasks });
        if observer.is_stopped() {
            return Err(stopped());
        }
        pause = if tasks < before { PAUSE_MIN } else { longer(pause) };
        before = tasks;
        thread::sleep(pause);
    }
}

fn forget_missing(state: &mut State, walked: &Walked) {
    let files = walked.files.iter().map(|(path, _)| path.as_str());
    let present: BTreeSet<&str> = files.chain(walked.unsendable.iter().map(String::as_str)).collect();
    let hidden = |path: &str| walked.unreadable.iter().any(|folder| path::is_below(path, folder));
    state.retain(|path| present.contains(path) || hidden(path));
}

fn stored_documents(remote: &dyn Remote, prefix: &str) -> Result<Vec<StoredDocument>> {
    let mut stored = Vec::new();
    remote.list(prefix, &mut |page| {
        stored.extend(page.into_iter().filter_map(|document| stored_document(document, prefix)));
    })?;
    Ok(stored)
}

/// `None` for a document that is not of this folder.
fn stored_document(document: RemoteDocument, prefix: &str) -> Option<StoredDocument> {
    let RemoteDocument { doc_id, source, title, file_sha256, updated_at } = document;
    let path = source.strip_prefix(prefix)?.to_owned();
    let digest = file_sha256.and_then(|digest| digest.parse().ok());
    Some(StoredDocument { doc_id, path, title, digest, updated_at })
}

//! A service in memory, which can fail and crash at any call.

use std::{
    collections::BTreeMap,
    io::Read,
    panic,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lkr_sync::{
    Error, ErrorKind, FILE_SHA256, Remote, RemoteDocument, Rename, Result, TaskId, TaskState, Upload,
};

pub(crate) const ME: &str = "me";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) doc_id: String,
    pub(crate) source: String,
    pub(crate) title: String,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) creator: String,
    pub(crate) content: Vec<u8>,
    pub(crate) updated_at: i64,
}

#[derive(Debug)]
struct Task {
    document: Document,
    /// The number of questions after which it ends.
    delay: usize,
    outcome: Option<TaskState>,
}

/// What a call does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It fails with this kind, before its work is done.
    Before(ErrorKind),
    /// Its work is done, but the answer is lost.
    After(ErrorKind),
    /// The client ends, before this call and any later one.
    Crash,
}

type Hook = Arc<dyn Fn(&str) + Send + Sync>;

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) documents: Vec<Document>,
    tasks: Vec<Task>,
    clock: i64,
    pub(crate) calls: usize,
    /// Faults by the number of the call.
    pub(crate) faults: BTreeMap<usize, Fault>,
    is_crashed: bool,
    /// The number of questions after which each new task ends.
    pub(crate) delay: usize,
    pub(crate) uploads: usize,
    /// Renames are refused.
    pub(crate) refuse_renames: bool,
    /// Called with the source, before the content is read.
    pub(crate) before_upload: Option<Hook>,
    /// The most tasks that were unfinished at a time.
    pub(crate) most_unfinished: usize,
}

#[derive(Clone, Default)]
pub(crate) struct Service(Arc<Mutex<Inner>>);

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Service")
    }
}

/// What a crash unwinds with.
pub(crate) struct Crashed;

impl Service {
    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets faults and the crash, as a new client finds the service.
    pub(crate) fn restart_client(&self, faults: BTreeMap<usize, Fault>) {
        let mut inner = self.inner();
        (inner.calls, inner.is_crashed, inner.faults) = (0, false, faults);
    }

    /// Lets some unfinished tasks end, in the order of their submission.
    pub(crate) fn finish_tasks(&self, count: usize) {
        let mut inner = self.inner();
        for _ in 0..count {
            let Some(index) = inner.tasks.iter().position(|task| task.outcome.is_none()) else { return };
            inner.finish(index);
        }
    }

    pub(crate) fn add(&self, source: &str, creator: &str, content: &[u8]) -> String {
        let mut inner = self.inner();
        let document = inner.new_document(source, creator, "other", content);
        let doc_id = document.doc_id.clone();
        inner.documents.push(document);
        doc_id
    }

    /// Content by source, of the documents below a prefix.
    pub(crate) fn contents(&self, prefix: &str) -> Vec<(String, Vec<u8>)> {
        let inner = self.inner();
        let mut all: Vec<_> = inner
            .documents
            .iter()
            .filter(|document| document.creator == ME)
            .filter_map(|document| {
                let path = document.source.strip_prefix(prefix)?.to_owned();
                Some((path, document.content.clone()))
            })
            .collect();
        all.sort();
        all
    }

    pub(crate) fn document(&self, source: &str) -> Document {
        let inner = self.inner();
        inner.documents.iter().find(|document| document.source == source).cloned().expect(source)
    }

    pub(crate) fn uploads(&self) -> usize {
        self.inner().uploads
    }

    /// Counts a call; the fault that happens after its work, if any.
    fn call(&self, operation: &'static str) -> Result<Option<Error>> {
        let mut inner = self.inner();
        let fault = inner.faults.get(&inner.calls).copied();
        inner.calls += 1;
        inner.is_crashed |= fault == Some(Fault::Crash);
        if inner.is_crashed {
            drop(inner);
            panic::resume_unwind(Box::new(Crashed));
        }
        match fault {
            Some(Fault::Before(kind)) => Err(Error::new(kind, operation, "fault")),
            Some(Fault::After(kind)) => Ok(Some(Error::new(kind, operation, "fault"))),
            _ => Ok(None),
        }
    }
}

fn answer<T>(value: T, fault: Option<Error>) -> Result<T> {
    fault.map_or(Ok(value), Err)
}

impl Inner {
    fn new_document(&mut self, source: &str, creator: &str, title: &str, content: &[u8]) -> Document {
        self.clock += 1;
        Document {
            doc_id: format!("{:032x}", self.clock),
            source: source.to_owned(),
            title: title.to_owned(),
            metadata: BTreeMap::new(),
            creator: creator.to_owned(),
            content: content.to_vec(),
            updated_at: self.clock,
        }
    }

    /// The newest document of a source, live or about to be.
    fn target(&self, source: &str) -> Option<String> {
        let live = self.documents.iter().filter(|d| d.creator == ME && d.source == source);
        let is_known = |id: &String| self.documents.iter().any(|document| document.doc_id == *id);
        let pending = self.tasks.iter().filter(|task| task.outcome.is_none());
        let pending = pending.map(|task| &task.document).filter(|d| d.source == source);
        live.map(|d| d.doc_id.clone())
            .chain(pending.map(|d| d.doc_id.clone()).filter(|id| !is_known(id)))
            .max()
    }

    fn finish(&mut self, index: usize) {
        let document = self.tasks[index].document.clone();
        if document.content.starts_with(b"bad") {
            self.tasks[index].outcome = Some(TaskState::Refused("cannot be read".into()));
            return;
        }
        self.tasks[index].outcome = Some(TaskState::Done);
        self.clock += 1;
        let updated_at = self.clock;
        match self.documents.iter_mut().find(|known| known.doc_id == document.doc_id) {
            Some(known) => {
                // A change of source or title after the submission stays.
                known.content = document.content;
                known.metadata = document.metadata;
                known.updated_at = updated_at;
            }
            None => self.documents.push(Document { updated_at, ..document }),
        }
    }

    fn unfinished(&self) -> usize {
        self.tasks.iter().filter(|task| task.outcome.is_none()).count()
    }
}

impl Remote for Service {
    fn list(&self, prefix: &str, page: &mut dyn FnMut(Vec<RemoteDocument>)) -> Result<()> {
        let fault = self.call("list")?;
        let inner = self.inner();
        let own = inner.documents.iter().filter(|d| d.creator == ME && d.source.starts_with(prefix));
        let documents: Vec<_> = own
            .map(|document| RemoteDocument {
                doc_id: document.doc_id.clone(),
                source: document.source.clone(),
                title: document.title.clone(),
                file_sha256: document.metadata.get(FILE_SHA256).cloned(),
                updated_at: document.updated_at,
            })
            .collect();
        drop(inner);
        documents.chunks(3).for_each(|chunk| page(chunk.to_vec()));
        answer((), fault)
    }

    fn upload(&self, upload: &Upload<'_>) -> Result<TaskId> {
        let fault = self.call("upload")?;
        let hook = self.inner().before_upload.clone();
        if let Some(hook) = hook {
            hook(upload.source);
        }
        let mut content = Vec::new();
        let read = upload.file.open().and_then(|mut file| file.read_to_end(&mut content));
        read.map_err(|error| Error::new(ErrorKind::Other, "upload", error))?;
        assert_eq!(content.len() as u64, upload.file.size());
        if content.starts_with(b"no") {
            return Err(Error::new(ErrorKind::Refused, "upload", "not accepted"));
        }
        let mut inner = self.inner();
        inner.uploads += 1;
        let title = upload.file_name.rsplit_once('.').map_or(upload.file_name, |(stem, _)| stem);
        let target = inner.target(upload.source);
        let mut document = inner.new_document(upload.source, ME, title, &content);
        document.metadata.clone_from(&upload.metadata);
        if let Some(target) = target {
            document.doc_id = target;
        }
        let delay = inner.delay;
        inner.tasks.push(Task { document, delay, outcome: None });
        inner.most_unfinished = inner.most_unfinished.max(inner.unfinished());
        let id = inner.tasks.len() - 1;
        drop(inner);
        answer(TaskId(id.to_string()), fault)
    }

    fn task(&self, id: &TaskId) -> Result<TaskState> {
        let fault = self.call("task")?;
        let mut inner = self.inner();
        let index: usize = id.0.parse().unwrap();
        match inner.tasks[index].delay {
            0 if inner.tasks[index].outcome.is_none() => inner.finish(index),
            0 => {}
            _ => inner.tasks[index].delay -= 1,
        }
        answer(inner.tasks[index].outcome.clone().unwrap_or(TaskState::Unfinished), fault)
    }

    fn rename(&self, doc_id: &str, rename: &Rename<'_>) -> Result<()> {
        let fault = self.call("rename")?;
        let mut inner = self.inner();
        if inner.refuse_renames {
            return Err(Error::new(ErrorKind::Refused, "rename", "not allowed"));
        }
        let document = inner.documents.iter_mut().find(|document| document.doc_id == doc_id);
        let document = document.ok_or_else(|| Error::new(ErrorKind::NotFound, "rename", "no document"))?;
        rename.source.clone_into(&mut document.source);
        if let Some(title) = rename.title {
            title.clone_into(&mut document.title);
        }
        if rename.removes_digest {
            document.metadata.remove(FILE_SHA256);
        }
        answer((), fault)
    }

    fn delete(&self, doc_id: &str) -> Result<()> {
        let fault = self.call("delete")?;
        let mut inner = self.inner();
        let before = inner.documents.len();
        assert!(inner.documents.iter().all(|d| d.doc_id != doc_id || d.creator == ME), "not mine");
        inner.documents.retain(|document| document.doc_id != doc_id);
        if inner.documents.len() == before {
            return Err(Error::new(ErrorKind::NotFound, "delete", "no document"));
        }
        answer((), fault)
    }

    fn unfinished_tasks(&self) -> Result<usize> {
        let fault = self.call("unfinished tasks")?;
        let mut inner = self.inner();
        let unfinished = inner.unfinished();
        // Each question lets one task end.
        if let Some(index) = inner.tasks.iter().position(|task| task.outcome.is_none()) {
            inner.finish(index);
        }
        answer(unfinished, fault)
    }
}

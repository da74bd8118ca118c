//! The stored form of a task about one document that is done or cancelled. There are very many of them, each for weeks, so names
//! have one letter, ids have base 64, and what nearly all have in common is left out.

use lkr_domain::{Counts, Creator, DocId, Original, SpaceName, TaskId, restore_id, shorten_id};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{
    DocumentResult, Duplicate, Error, ErrorKind, ModelUsage, Progress, Result, Stage, Task, TaskFailure,
    TaskInput, TaskKind, TaskResult, TaskStatus, TaskSubject,
};

/// How a record in this form begins. Those of [version 1](super::TaskV1) do not.
const HEAD: &[u8] = br#"{"v":2,"#;
const VERSION: u32 = 2;

/// The task's own id is not shortened by that of another.
const NO_ID: [u8; 16] = [0; 16];
/// The path of an original contains the document's id, of which this takes the place.
const DOC_ID: &str = "*";

const NS_PER_MS: i128 = 1_000_000;

/// What nearly all tasks have.
const USUAL_KIND: TaskKind = TaskKind::Ingest;
const USUAL_PROGRESS: (Stage, Progress) = (Stage::Publish, Progress { done: 1, total: 1 });
const USUAL_ATTEMPTS: u32 = 1;
const USUAL_REVISION: u64 = 1;

/// Version 2 of the record of a task about one document that is done, or was cancelled. Its ids are [short](shorten_id), and like the
/// task's one.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EndedTaskV2 {
    v: u32,
    #[serde(rename = "i")]
    task_id: String,
    #[serde(rename = "d")]
    doc_id: String,
    /// Absent for the default space.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    space: Option<SpaceName>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    kind: Option<TaskKind>,
    /// The stage, and how many units of it were done, of how many.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    progress: Option<(Stage, u64, u64)>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    /// The nanoseconds from the time in the task's id to when it was accepted, and from then to when it ended.
    #[serde(rename = "t")]
    times: (i64, i64),
    /// The name and the id.
    #[serde(rename = "b")]
    created_by: (String, String),
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    revision: Option<u64>,
    #[serde(rename = "n", default, skip_serializing_if = "String::is_empty")]
    title: String,
    /// The path with [`DOC_ID`] for the document's id, the name of the file, and its length.
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    original: Option<(String, String, u64)>,
    /// Absent if the task was cancelled.
    #[serde(rename = "e", default, skip_serializing_if = "Option::is_none")]
    result: Option<DocumentResultV2>,
}

/// Version 2 of a [`DocumentResult`].
#[derive(Debug, Serialize, Deserialize)]
struct DocumentResultV2 {
    /// Absent if it is the task's.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<Duplicate>,
    #[serde(rename = "c", default, skip_serializing_if = "String::is_empty")]
    category: String,
    /// The language, the counts from L1 to chunks, the embedded texts and the milliseconds.
    #[serde(rename = "f")]
    figures: (String, [u64; 4], u64, u64),
    /// Calls and tokens.
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    usage: Option<(u64, u64)>,
    #[serde(rename = "w", default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// Whether a record is in this form.
pub(super) fn is_ended(record: &[u8]) -> bool {
    record.starts_with(HEAD)
}

/// Reads a record in this form.
pub(super) fn read(record: &[u8]) -> Result<Task> {
    let record: EndedTaskV2 =
        serde_json::from_slice(record).map_err(|e| Error::corrupt("read task record", e))?;
    let damaged = || Error::new(ErrorKind::Corrupt, "read task record", "an id or a time of it is not valid");
    record.into_task().ok_or_else(damaged)
}

impl EndedTaskV2 {
    /// The record of a task; `None` if the task may still run, or has something for which this form has no place.
    pub(super) fn new(task: &Task) -> Option<Self> {
        let doc_id = task.subject.doc_id()?;
        let is_of_document = matches!(task.kind, TaskKind::Ingest | TaskKind::Replace);
        if task.may_run() || !is_of_document || task.key.is_some() || task.input.model.is_some() {
            return None;
        }
        let result = match (task.status, &task.result, &task.error) {
            (TaskStatus::Done, Some(TaskResult::Document(result)), None) => Some(result),
            (TaskStatus::Failed, None, Some(error)) if *error == TaskFailure::cancelled(task.stage) => None,
            _ => return None,
        };
        let like = task.task_id.as_bytes();
        let original = match &task.input.original {
            Some(original) => Some(short_original(original, doc_id)?),
            None => None,
        };
        Some(Self {
            v: VERSION,
            task_id: shorten_id(&task.task_id.to_string(), &NO_ID),
            doc_id: shorten_id(&doc_id.to_string(), like),
            space: task.space.clone().filter(|space| !space.is_default()),
            kind: unless_usual(task.kind, USUAL_KIND),
            progress: unless_usual((task.stage, task.progress), USUAL_PROGRESS)
                .map(|(stage, Progress { done, total })| (stage, done, total)),
            attempts: unless_usual(task.attempts, USUAL_ATTEMPTS),
            times: short_times(task)?,
            created_by: (task.created_by.name.clone(), shorten_id(&task.created_by.id, like)),
            revision: unless_usual(task.input.revision, USUAL_REVISION),
            title: task.input.title.clone(),
            original,
            result: result.map(|result| DocumentResultV2::new(result, &task.input.title)),
        })
    }

    /// The task; `None` if an id or a time is not valid.
    fn into_task(self) -> Option<Task> {
        let task_id: TaskId = restore_id(&self.task_id, &NO_ID)?.parse().ok()?;
        let like = task_id.as_bytes();
        let doc_id: DocId = restore_id(&self.doc_id, like)?.parse().ok()?;
        let (created_at, updated_at) = times(task_id, self.times)?;
        let (name, account) = self.created_by;
        let usual = (USUAL_PROGRESS.0, USUAL_PROGRESS.1.done, USUAL_PROGRESS.1.total);
        let (stage, done, total) = self.progress.unwrap_or(usual);
        let (status, error) = match self.result {
            Some(_) => (TaskStatus::Done, None),
            None => (TaskStatus::Failed, Some(TaskFailure::cancelled(stage))),
        };
        let result = self.result.map(|result| TaskResult::Document(result.into_result(&self.title)));
        Some(Task {
            task_id,
            subject: TaskSubject::Document(doc_id),
            space: Some(self.space.unwrap_or_default()),
            kind: self.kind.unwrap_or(USUAL_KIND),
            status,
            stage,
            progress: Progress { done, total },
            attempts: self.attempts.unwrap_or(USUAL_ATTEMPTS),
            created_at,
            updated_at,
            created_by: Creator { name, id: restore_id(&account, like)? },
            key: None,
            input: TaskInput {
                revision: self.revision.unwrap_or(USUAL_REVISION),
                title: self.title,
                original: self.original.map(|original| whole_original(original, doc_id)),
                ..TaskInput::default()
            },
            result,
            error,
        })
    }
}

impl DocumentResultV2 {
    fn new(result: &DocumentResult, task_title: &str) -> Self {
        let Counts { l1, l2, l3, chunks } = result.counts;
        let usage = unless_usual(result.usage, ModelUsage::default());
        Self {
            title: Some(&result.title).filter(|title| *title != task_title).cloned(),
            duplicate_of: result.duplicate_of,
            category: result.category.clone(),
            figures: (result.language.clone(), [l1, l2, l3, chunks], result.embedded, result.elapsed_ms),
            usage: usage.map(|ModelUsage { calls, tokens }| (calls, tokens)),
            warnings: result.warnings.clone(),
        }
    }

    fn into_result(self, task_title: &str) -> DocumentResult {
        let (language, [l1, l2, l3, chunks], embedded, elapsed_ms) = self.figures;
        let (calls, tokens) = self.usage.unwrap_or_default();
        DocumentResult {
            title: self.title.unwrap_or_else(|| task_title.to_owned()),
            duplicate_of: self.duplicate_of,
            category: self.category,
            language,
            counts: Counts { l1, l2, l3, chunks },
            embedded,
            usage: ModelUsage { calls, tokens },
            warnings: self.warnings,
            elapsed_ms,
        }
    }
}

fn unless_usual<T: Copy + PartialEq>(value: T, usual: T) -> Option<T> {
    (value != usual).then_some(value)
}

/// The times of a task; `None` if they are centuries apart.
fn short_times(task: &Task) -> Option<(i64, i64)> {
    let created = task.created_at.unix_timestamp_nanos();
    let waited = created - i128::from(task.task_id.unix_ms()) * NS_PER_MS;
    let took = task.updated_at.unix_timestamp_nanos() - created;
    Some((i64::try_from(waited).ok()?, i64::try_from(took).ok()?))
}

/// When a task was accepted, and when it ended.
fn times(task_id: TaskId, (waited, took): (i64, i64)) -> Option<(OffsetDateTime, OffsetDateTime)> {
    let created = i128::from(task_id.unix_ms()) * NS_PER_MS + i128::from(waited);
    let at = |ns: i128| OffsetDateTime::from_unix_timestamp_nanos(ns).ok();
    Some((at(created)?, at(created + i128::from(took))?))
}

/// An original without its SHA-256; `None` if its path has a character that stands for the document's id.
fn short_original(original: &Original, doc_id: DocId) -> Option<(String, String, u64)> {
    let path = Some(&original.path).filter(|path| !path.contains(DOC_ID))?;
    Some((path.replacen(&doc_id.to_string(), DOC_ID, 1), original.file_name.clone(), original.size_bytes))
}

fn whole_original((path, file_name, size_bytes): (String, String, u64), doc_id: DocId) -> Original {
    let path = path.replacen(DOC_ID, &doc_id.to_string(), 1);
    Original { path, file_name, size_bytes, sha256: None }
}

//! The stored forms of a task's record.

mod ended;

use lkr_domain::{Creator, Dedup, DocId, Metadata, Original, SpaceName, TaskId};
use lkr_state::Record;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use self::ended::EndedTaskV2;
use crate::{
    Error, FailureReason, ModelName, Progress, Result, Stage, Task, TaskFailure, TaskInput, TaskKind,
    TaskResult, TaskStatus, TaskSubject,
};

/// Version 1 of the record, which has no version tag. Tasks for which [version 2](EndedTaskV2) has no place are written in it: those that
/// may run, and those about several documents. Earlier releases wrote all tasks in it.
#[derive(Debug, Serialize, Deserialize)]
struct TaskV1 {
    task_id: TaskId,
    /// [`TaskSubject::record_id`]; the kind tells whether it is a document's id.
    doc_id: DocId,
    /// Absent in tasks of versions without spaces, whose documents are in the default space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space: Option<SpaceName>,
    kind: TaskKind,
    status: TaskStatus,
    stage: Stage,
    progress: Progress,
    attempts: u32,
    #[serde(with = "time::serde::rfc3339")]
    created_at: OffsetDateTime,
    #[serde(with = "time::serde::rfc3339")]
    updated_at: OffsetDateTime,
    #[serde(flatten)]
    created_by: Creator,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    input: TaskInputV1,
    #[serde(default)]
    result: Option<TaskResult>,
    #[serde(default)]
    error: Option<TaskFailureV1>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TaskInputV1 {
    revision: u64,
    title: String,
    source: String,
    metadata: Metadata,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<Original>,
    #[serde(default)]
    extracted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text_sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blocks_sha256: Option<String>,
    #[serde(default)]
    dedup: Dedup,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct TaskFailureV1 {
    /// A number of [`REASONS_V1`].
    code: u32,
    message: String,
    stage: Stage,
    retryable: bool,
}

/// The numbers that version 1 stores for reasons. They are part of the stored form and do not change with public codes.
const REASONS_V1: [(FailureReason, u32); 3] =
    [(FailureReason::Invalid, 1001), (FailureReason::Cancelled, 1003), (FailureReason::Internal, 2000)];

pub(crate) fn write_task(task: &Task) -> Result<Vec<u8>> {
    let written = match EndedTaskV2::new(task) {
        Some(ended) => serde_json::to_vec(&ended),
        None => serde_json::to_vec(&TaskV1::from(task.clone())),
    };
    written.map_err(|e| Error::corrupt("write task record", e))
}

pub(crate) fn read_task(record: &Record) -> Result<Task> {
    if ended::is_ended(&record.value) {
        return ended::read(&record.value);
    }
    let task: TaskV1 =
        serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read task record", e))?;
    Ok(task.into())
}

impl From<Task> for TaskV1 {
    fn from(task: Task) -> Self {
        let is_corpus = task.subject.doc_id().is_none();
        let may_run = task.may_run();
        Self {
            task_id: task.task_id,
            doc_id: task.subject.record_id(),
            space: task.space.filter(|space| is_corpus || !space.is_default()),
            kind: task.kind,
            status: task.status,
            stage: task.stage,
            progress: task.progress,
            attempts: task.attempts,
            created_at: task.created_at,
            updated_at: task.updated_at,
            created_by: task.created_by,
            key: task.key,
            input: if may_run { task.input } else { task.input.of_ended() }.into(),
            result: task.result,
            error: task.error.map(TaskFailureV1::from),
        }
    }
}

impl From<TaskV1> for Task {
    fn from(record: TaskV1) -> Self {
        let subject = TaskSubject::of_record(record.kind, record.doc_id);
        let default = subject.doc_id().map(|_| SpaceName::default());
        Self {
            task_id: record.task_id,
            subject,
            space: record.space.or(default),
            kind: record.kind,
            status: record.status,
            stage: record.stage,
            progress: record.progress,
            attempts: record.attempts,
            created_at: record.created_at,
            updated_at: record.updated_at,
            created_by: record.created_by,
            key: record.key,
            input: record.input.into(),
            result: record.result,
            error: record.error.map(TaskFailure::from),
        }
    }
}

impl From<TaskInput> for TaskInputV1 {
    fn from(input: TaskInput) -> Self {
        Self {
            revision: input.revision,
            title: input.title,
            source: input.source,
            metadata: input.metadata,
            warnings: input.warnings,
            original: input.original,
            extracted: input.extracted,
            text_sha256: input.text_sha256,
            blocks_sha256: input.blocks_sha256,
            dedup: input.dedup,
            model: input.model,
            origin: input.origin,
        }
    }
}

impl From<TaskInputV1> for TaskInput {
    fn from(record: TaskInputV1) -> Self {
        Self {
            revision: record.revision,
            title: record.title,
            source: record.source,
            metadata: record.metadata,
            warnings: record.warnings,
            original: record.original,
            extracted: record.extracted,
            text_sha256: record.text_sha256,
            blocks_sha256: record.blocks_sha256,
            dedup: record.dedup,
            model: record.model,
            origin: record.origin,
        }
    }
}

impl From<TaskFailure> for TaskFailureV1 {
    fn from(failure: TaskFailure) -> Self {
        let number = REASONS_V1.iter().find(|(reason, _)| *reason == failure.reason);
        Self {
            code: number.map_or(2000, |(_, number)| *number),
            message: failure.message,
            stage: failure.stage,
            retryable: failure.retryable,
        }
    }
}

impl From<TaskFailureV1> for TaskFailure {
    fn from(record: TaskFailureV1) -> Self {
        let reason = REASONS_V1.iter().find(|(_, number)| *number == record.code);
        Self {
            reason: reason.map_or(FailureReason::Internal, |(reason, _)| *reason),
            message: record.message,
            stage: record.stage,
            retryable: record.retryable,
        }
    }
}

#[cfg(test)]
mod tests;

//! The service over HTTP, as the synchronisation sees it.

use std::{
    fmt,
    io::{self, ErrorKind::InvalidData},
    path::Path,
    sync::{Mutex, PoisonError},
};

use anyhow::anyhow;
use lkr_sync::{
    Error, ErrorKind, FILE_SHA256, Remote, RemoteDocument, Rename, Result, TaskId, TaskState, Upload,
};
use serde_json::{Map, Value, json};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    commands::{
        each_item,
        query::{QueryString, segment},
    },
    exit::reason,
    http::{ApiError, Client, FileForm},
    terminal::field,
    wait::{Task, read_task, retry_while_overloaded},
};

/// The documents that this account created in one space.
pub(super) struct HttpRemote {
    client: Client,
    space: String,
    username: String,
    /// The error that ended the run, with what the exit code needs.
    fatal: Mutex<Option<anyhow::Error>>,
}

impl fmt::Debug for HttpRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRemote").field("space", &self.space).finish_non_exhaustive()
    }
}

/// What a refusal of a request means for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The request is about one file or document.
    Item,
    /// The request is about the space or the account.
    Run,
}

impl HttpRemote {
    /// Finds out the account, and that the space exists.
    pub(super) fn connect(client: Client, space: &str) -> anyhow::Result<Self> {
        let username = field(&client.get("/auth/me")?.data, "username");
        client.get(&format!("/spaces/{}", segment(space)))?;
        Ok(Self { client, space: space.to_owned(), username, fatal: Mutex::new(None) })
    }

    /// The error of the service that ended a run, or the given one.
    pub(super) fn cause(&self, error: Error) -> anyhow::Error {
        let fatal = self.fatal.lock().unwrap_or_else(PoisonError::into_inner).take();
        fatal.unwrap_or_else(|| anyhow!(error))
    }

    fn error(&self, operation: &'static str, scope: Scope, error: anyhow::Error) -> Error {
        let message = reason(&error);
        let kind = kind_of(&error, scope);
        if kind == ErrorKind::Unavailable {
            *self.fatal.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        Error::new(kind, operation, message)
    }

    fn path(doc_id: &str) -> String {
        format!("/documents/{doc_id}")
    }

    fn unfinished(&self, status: &str) -> anyhow::Result<usize> {
        let query = QueryString::default().with("status", status).with("space", self.space.clone());
        let mut count = 0;
        each_item(&self.client, "/documents/tasks", &query, None, &mut |task| {
            let is_own = field(&task, "created_by") == self.username;
            count += usize::from(is_own && matches!(field(&task, "kind").as_str(), "ingest" | "replace"));
            Ok(())
        })?;
        Ok(count)
    }
}

impl Remote for HttpRemote {
    fn list(&self, prefix: &str, page: &mut dyn FnMut(Vec<RemoteDocument>)) -> Result<()> {
        let condition = json!({"and": [
            {"field": "source", "prefix": prefix},
            {"field": "created_by", "eq": self.username}
        ]});
        let query =
            QueryString::default().with("space", self.space.clone()).with("where", condition.to_string());
        let listed = each_item(&self.client, "/documents", &query, None, &mut |item| {
            page(vec![document(&item)]);
            Ok(())
        });
        listed.map_err(|error| self.error("list documents", Scope::Run, error))
    }

    fn upload(&self, upload: &Upload<'_>) -> Result<TaskId> {
        let stem = Path::new(upload.file_name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let fields = [
            ("title", stem),
            ("source", upload.source.to_owned()),
            ("space", self.space.clone()),
            ("metadata", json!(upload.metadata).to_string()),
            ("upsert", "true".to_owned()),
            // Each file has a document, even if another one has the same text.
            ("force", "true".to_owned()),
        ];
        let form = FileForm { file_name: upload.file_name, fields: &fields };
        let send = || {
            let file = upload.file.open()?;
            self.client.post_form("/documents/upload", form.of_reader(file))
        };
        let response = retry_while_overloaded(&self.client, send);
        let response = response.map_err(|error| self.error("upload file", Scope::Item, error))?;
        Ok(TaskId(field(&response.data, "task_id")))
    }

    fn task(&self, id: &TaskId) -> Result<TaskState> {
        let task =
            read_task(&self.client, &id.0).map_err(|error| self.error("read task", Scope::Item, error))?;
        Ok(state_of(task))
    }

    fn rename(&self, doc_id: &str, rename: &Rename<'_>) -> Result<()> {
        let change = change_of(rename);
        let changed =
            retry_while_overloaded(&self.client, || self.client.patch(&Self::path(doc_id), &change));
        changed.map(drop).map_err(|error| self.error("move document", Scope::Item, error))
    }

    fn delete(&self, doc_id: &str) -> Result<()> {
        let deleted = retry_while_overloaded(&self.client, || self.client.delete(&Self::path(doc_id)));
        deleted.map(drop).map_err(|error| self.error("delete document", Scope::Item, error))
    }

    fn unfinished_tasks(&self) -> Result<usize> {
        let count = self.unfinished("pending").and_then(|count| Ok(count + self.unfinished("running")?));
        count.map_err(|error| self.error("list tasks", Scope::Run, error))
    }
}

/// The change of a document's record.
fn change_of(rename: &Rename<'_>) -> Value {
    let mut change = Map::from_iter([("source".to_owned(), json!(rename.source))]);
    change.extend(rename.title.map(|title| ("title".to_owned(), json!(title))));
    if rename.removes_digest {
        change.insert("metadata".to_owned(), json!({FILE_SHA256: null}));
    }
    Value::Object(change)
}

fn state_of(task: Task) -> TaskState {
    if !task.has_ended() {
        return TaskState::Unfinished;
    }
    // One that was cancelled, or whose document was deleted or replaced meanwhile, says nothing of the file.
    let is_final = task.error.as_ref().is_some_and(|error| !error.retryable && error.code != CONFLICT);
    match task.outcome() {
        Ok(_) => TaskState::Done,
        Err(reason) if is_final => TaskState::Refused(reason),
        Err(reason) => TaskState::Failed(reason),
    }
}

/// The code of a cancelled task, and of a change that contradicts another one.
const CONFLICT: u64 = 1003;

/// A server that cannot be reached, and a refusal of the caller, end the run.
fn kind_of(error: &anyhow::Error, scope: Scope) -> ErrorKind {
    if let Some(refusal) = error.downcast_ref::<ApiError>() {
        return match (refusal.code, scope) {
            (Some(1001), Scope::Item) => ErrorKind::Refused,
            (Some(1004), Scope::Item) => ErrorKind::NotFound,
            (Some(CONFLICT), Scope::Item) | (Some(2000), _) => ErrorKind::Other,
            _ => ErrorKind::Unavailable,
        };
    }
    // The file changed while it was sent, or it cannot be read.
    let has_changed = matches!(error.downcast_ref(), Some(ureq::Error::Io(io)) if io.kind() == InvalidData);
    if has_changed || error.downcast_ref::<io::Error>().is_some() {
        return ErrorKind::Other;
    }
    ErrorKind::Unavailable
}

fn document(item: &Value) -> RemoteDocument {
    let metadata = item.get("metadata").and_then(|metadata| metadata.get(FILE_SHA256));
    let updated = OffsetDateTime::parse(&field(item, "updated_at"), &Rfc3339);
    let updated = updated.map_or(0, |at| at.unix_timestamp_nanos() / 1_000_000);
    RemoteDocument {
        doc_id: field(item, "doc_id"),
        source: field(item, "source"),
        title: field(item, "title"),
        file_sha256: metadata.and_then(Value::as_str).map(str::to_owned),
        updated_at: i64::try_from(updated).unwrap_or(i64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn refusal_of_a_file_does_not_end_the_run_and_that_of_the_caller_does() {
        let refusal = |code| {
            let error = ApiError { status: 400, code: Some(code), message: String::new(), retry_after: None };
            Err::<(), _>(anyhow::Error::from(error)).context("POST /").unwrap_err()
        };
        assert_eq!(kind_of(&refusal(1001), Scope::Item), ErrorKind::Refused);
        assert_eq!(kind_of(&refusal(1004), Scope::Item), ErrorKind::NotFound);
        for code in [1003, 2000] {
            assert_eq!(kind_of(&refusal(code), Scope::Item), ErrorKind::Other, "{code}");
        }
        for (code, scope) in
            [(1005, Scope::Item), (1006, Scope::Item), (1010, Scope::Item), (1004, Scope::Run)]
        {
            assert_eq!(kind_of(&refusal(code), scope), ErrorKind::Unavailable, "{code}");
        }
        let changed = ureq::Error::Io(io::Error::from(InvalidData));
        assert_eq!(kind_of(&changed.into(), Scope::Item), ErrorKind::Other);
        let refused = ureq::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(kind_of(&refused.into(), Scope::Item), ErrorKind::Unavailable);
    }

    #[test]
    fn cancelled_task_says_nothing_of_its_file() {
        let failed = |code, retryable| {
            let error = json!({ "code": code, "message": "no", "retryable": retryable });
            state_of(serde_json::from_value(json!({ "status": "failed", "error": error })).unwrap())
        };
        assert!(matches!(failed(1001, false), TaskState::Refused(_)));
        assert!(matches!(failed(1001, true), TaskState::Failed(_)));
        assert!(matches!(failed(1003, false), TaskState::Failed(_)));
    }

    #[test]
    fn rename_removes_the_digest_of_a_document_that_is_sent_again() {
        let rename = Rename { source: "sync:1/a.md", title: None, removes_digest: false };
        assert_eq!(change_of(&rename), json!({"source": "sync:1/a.md"}));
        let again = Rename { title: Some("a"), removes_digest: true, ..rename };
        let expected = json!({"source": "sync:1/a.md", "title": "a", "metadata": {"file_sha256": null}});
        assert_eq!(change_of(&again), expected);
    }

    #[test]
    fn document_has_its_digest_and_the_time_of_its_revision() {
        let item = json!({
            "doc_id": "d", "source": "sync:1/a.md", "title": "a", "updated_at": "1970-01-01T00:00:01.5Z",
            "metadata": {FILE_SHA256: "00ff"}
        });
        let read = document(&item);
        assert_eq!((read.updated_at, read.file_sha256.as_deref()), (1_500, Some("00ff")));
    }
}

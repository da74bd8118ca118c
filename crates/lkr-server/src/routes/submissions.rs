//! Bringing documents in as JSON, and replacing them.

use actix_web::http::{Method, StatusCode, header::HeaderName};
use lkr::{Dedup, DocId, Idempotency, OnReplace, Submission, Task, Upsert};
use lkr_auth::{AuditAction, AuditLog};
use lkr_settings::DedupStrategy;
use serde_json::Map;

use crate::{
    error::{ApiError, Code, Failing},
    http::{Answer, Caller, Cx, Endpoint, Member, Owner, Reply, unknown_document},
    openapi::{Doc, Shape, schema},
    wire::{
        batch::{BatchAccepted, BatchInput},
        document_input::{DocumentInput, MAX_TEXT_BYTES},
        tasks::Accepted,
    },
};

/// The largest body: every byte of the text may be written as an escape of six, and the rest needs some room.
const BODY_BYTES: usize = 6 * MAX_TEXT_BYTES + 2 * 1024 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What the documentation says of the header.
pub(super) const IDEMPOTENCY: (&str, &str) = (
    "Idempotency-Key",
    "1 to 128 characters: who sends the same key again within 24 hours is answered the first task, as it stands then.",
);

/// The longest key, in characters.
const MAX_KEY_CHARS: usize = 128;

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Documents", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/documents",
            doc("add_document", "Accepts a document for ingestion", schema::<Accepted>())
                .status(StatusCode::ACCEPTED)
                .request_header(IDEMPOTENCY.0, IDEMPOTENCY.1)
                .body::<DocumentInput>(),
            add,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/batch",
            doc(
                "add_documents",
                "Accepts several documents for ingestion, all of them or none",
                schema::<BatchAccepted>(),
            )
            .status(StatusCode::ACCEPTED)
            .request_header(IDEMPOTENCY.0, IDEMPOTENCY.1)
            .body::<BatchInput>(),
            add_all,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/documents/{doc_id}",
            doc(
                "replace_document",
                "Accepts another text and other properties for a document; searches see all of the old or all of the new",
                schema::<Accepted>(),
            )
            .status(StatusCode::ACCEPTED)
            .body::<DocumentInput>()
            .errors(&[Code::NotFound]),
            replace,
        ),
    ]
}

async fn add(Member(caller): Member, mut cx: Cx) -> Answer {
    let idempotency = idempotency(&cx, &caller, "documents")?;
    if let Some(task) = only(remembered(&cx, idempotency.as_ref()).await?) {
        return Reply::accepted(&Accepted::from(&task));
    }
    let input: DocumentInput = cx.json(BODY_BYTES).await?;
    let flags = input.flags();
    let (document, warnings) = input.check()?;
    let submission = Submission { warnings, idempotency, ..submission(&cx, &caller, flags).await? };
    let task = cx.services()?.kb.submit(document, submission).await.writing()?;
    Reply::accepted(&Accepted::from(&task))
}

async fn add_all(Member(caller): Member, mut cx: Cx) -> Answer {
    let idempotency = idempotency(&cx, &caller, "batch")?;
    if let Some(tasks) = remembered(&cx, idempotency.as_ref()).await? {
        return Reply::accepted(&BatchAccepted::from(&*tasks));
    }
    let input: BatchInput = cx.json(BODY_BYTES).await?;
    let common = submission(&cx, &caller, Flags::default()).await?;
    let documents = input.check()?.into_iter().map(|(document, warnings, flags)| {
        let submission = Submission { warnings, ..flags.apply(common.clone(), &caller) };
        (document, submission)
    });
    let tasks = cx.services()?.kb.submit_all(documents.collect(), idempotency).await.writing()?;
    Reply::accepted(&BatchAccepted::from(&*tasks))
}

async fn replace(Owner(caller): Owner, mut cx: Cx) -> Answer {
    let input: DocumentInput = cx.json(BODY_BYTES).await?;
    let doc_id = cx.doc_id()?;
    let (document, warnings) = input.check()?;
    let submission = Submission { warnings, ..submission(&cx, &caller, Flags::default()).await? };
    let task = cx.services()?.kb.replace(doc_id, document, submission).await.writing()?;
    Reply::accepted(&Accepted::from(&task.ok_or_else(unknown_document)?))
}

/// What a sender says of how a document is to be taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Although it may be a duplicate.
    pub(crate) force: bool,
    /// In place of the live one of the same source.
    pub(crate) upsert: bool,
}

impl Flags {
    fn apply(self, submission: Submission, caller: &Caller) -> Submission {
        let may = if caller.is_admin() { Upsert::Any } else { Upsert::Own };
        Submission {
            dedup: if self.force { Dedup::None } else { submission.dedup },
            upsert: self.upsert.then_some(may),
            ..submission
        }
    }
}

/// How a caller's documents are taken, as the settings are now.
pub(super) async fn submission(cx: &Cx, caller: &Caller, flags: Flags) -> Result<Submission, ApiError> {
    let settings = cx.services()?.settings.current().await?;
    let dedup = match settings.settings.dedup.strategy {
        DedupStrategy::None => Dedup::None,
        DedupStrategy::Simhash => {
            Dedup::Simhash { threshold: settings.settings.dedup.simhash_threshold.into() }
        }
        _ => Dedup::Sha256,
    };
    let by = caller.clone();
    let on_replace = OnReplace::new(move |doc_id: DocId| {
        let entry = AuditLog::entry(by.by(), AuditAction::DocumentReplace, &doc_id.to_string(), Map::new());
        entry
            .map_err(|error| tracing::error!(%error, "an audit entry could not be made"))
            .into_iter()
            .collect()
    });
    let common = Submission { dedup, on_replace, ..Submission::by(caller.creator()) };
    Ok(flags.apply(common, caller))
}

/// What the caller tells this submission by from others.
pub(super) fn idempotency(
    cx: &Cx,
    caller: &Caller,
    endpoint: &'static str,
) -> Result<Option<Idempotency>, ApiError> {
    let mut keys = cx.header(IDEMPOTENCY_KEY);
    let Some(key) = keys.next() else { return Ok(None) };
    let length = key.chars().count();
    if keys.next().is_some() || !(1..=MAX_KEY_CHARS).contains(&length) {
        let reason = format!("the header Idempotency-Key has to be one of 1 to {MAX_KEY_CHARS} characters");
        return Err(ApiError::invalid(reason));
    }
    Ok(Some(Idempotency { account: caller.account.id.clone(), endpoint, key: key.to_owned() }))
}

/// The tasks that the same key was answered before.
pub(super) async fn remembered(
    cx: &Cx,
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>, ApiError> {
    match idempotency {
        Some(idempotency) => cx.services()?.kb.remembered(idempotency).await.writing(),
        None => Ok(None),
    }
}

pub(super) fn only(tasks: Option<Vec<Task>>) -> Option<Task> {
    tasks.and_then(|tasks| tasks.into_iter().next())
}

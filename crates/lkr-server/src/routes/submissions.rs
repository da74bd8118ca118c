//! Adds and replaces documents sent as JSON.

use std::collections::BTreeSet;

use actix_web::http::{Method, StatusCode, header::HeaderName};
use lkr::{Dedup, DocId, Idempotency, MAX_NEW_TEXT_BYTES, OnReplace, Submission, Task, Upsert};
use lkr_auth::{AuditAction, AuditLog, Credential};
use lkr_settings::DedupStrategy;
use lkr_spaces::{SpaceName, Spaces};
use serde_json::Map;

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Authenticated, Caller, Endpoint, HandlerResult, OwnedDocument, Owner, RequestContext,
        Rights, named_space, unknown_document,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    state::Services,
    traces,
    wire::{
        batch::{BatchAccepted, BatchInput},
        document_input::DocumentInput,
        submission_options::SubmissionOptions,
        tasks::Accepted,
    },
};

/// The largest body. Each byte of the text may be escaped to six, and the other fields need some room.
const BODY_BYTES: usize = 6 * MAX_NEW_TEXT_BYTES + 2 * 1024 * 1024;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The header's name and its documentation.
pub(super) const IDEMPOTENCY: (&str, &str) = (
    "Idempotency-Key",
    "1 to 128 characters. A second request with the same key within 24 hours returns the task of the first, in its \
     current state.",
);

/// The longest key, in characters.
pub(super) const MAX_KEY_CHARS: usize = 128;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc =
        |id, summary, shape| OperationDoc::new("Documents", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/documents",
            doc("add_document", "Accepts a document for ingestion", schema::<Accepted>())
                .status(StatusCode::ACCEPTED)
                .idempotency_key(IDEMPOTENCY.0, IDEMPOTENCY.1, MAX_KEY_CHARS)
                .body::<DocumentInput>()
                .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            add,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/batch",
            doc(
                "add_documents",
                "Accepts several documents for ingestion: all of them or none",
                schema::<BatchAccepted>(),
            )
            .status(StatusCode::ACCEPTED)
            .idempotency_key(IDEMPOTENCY.0, IDEMPOTENCY.1, MAX_KEY_CHARS)
            .body::<BatchInput>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            add_all,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/documents/{doc_id}",
            doc(
                "replace_document",
                "Accepts a replacement of a document's text and properties. A search sees the old version or the new one, never a mix",
                schema::<Accepted>(),
            )
            .status(StatusCode::ACCEPTED)
            .body::<DocumentInput>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            replace,
        ),
    ]
}

async fn add(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    let idempotency = idempotency(&cx, &caller, "documents")?;
    if let Some(task) = first(replayed_tasks(&cx, idempotency.as_ref()).await?) {
        return ApiResponse::accepted(&Accepted::from(&task));
    }
    let input: DocumentInput = cx.json(BODY_BYTES).await?;
    let options = input.options();
    let (document, warnings) = input.check()?;
    let submission = Submission {
        warnings,
        idempotency,
        ..submission(cx.services()?, &cx.current(caller.clone()), options).await?
    };
    let (services, space) = (cx.services()?, submission.space.clone());
    let accepted = services.kb.submit(document, submission).await;
    let task = unless_closed(services, &caller, [space], accepted).await?;
    ApiResponse::accepted(&Accepted::from(&task))
}

async fn add_all(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    let idempotency = idempotency(&cx, &caller, "batch")?;
    if let Some(tasks) = replayed_tasks(&cx, idempotency.as_ref()).await? {
        return ApiResponse::accepted(&BatchAccepted::from(&*tasks));
    }
    let input: BatchInput = cx.json(BODY_BYTES).await?;
    let common = common_submission(cx.services()?, &caller).await?;
    let rights = cx.rights_to_write(Some(&caller)).await?;
    let documents = input.check()?.into_iter().enumerate().map(|(at, (document, warnings, options))| {
        let applied = apply(options, common.clone(), &rights);
        let submission = applied
            .map_err(|error| ApiError { message: format!("documents[{at}]: {}", error.message), ..error })?;
        Ok((document, Submission { warnings, ..submission }))
    });
    let documents = documents.collect::<Result<Vec<_>, ApiError>>()?;
    let spaces: BTreeSet<SpaceName> =
        documents.iter().map(|(_, submission)| submission.space.clone()).collect();
    let services = cx.services()?;
    let accepted = services.kb.submit_all(documents, idempotency).await;
    let tasks = unless_closed(services, &caller, spaces, accepted).await?;
    ApiResponse::accepted(&BatchAccepted::from(&*tasks))
}

async fn replace(owner: Owner, mut cx: RequestContext) -> HandlerResult {
    let input: DocumentInput = cx.json(BODY_BYTES).await?;
    let OwnedDocument { doc_id, space, .. } = owner.document()?.clone();
    let named = input.options().space;
    let (document, mut warnings) = input.check()?;
    warnings.extend(ignored_space(named.as_deref(), &space));
    let submission = Submission { warnings, ..common_submission(cx.services()?, &owner.caller).await? };
    let task = cx.services()?.kb.replace(doc_id, document, submission).await.for_write()?;
    ApiResponse::accepted(&Accepted::from(&task.ok_or_else(unknown_document)?))
}

/// The warning of a replacement that names another space than the document's.
pub(super) fn ignored_space(named: Option<&str>, space: &SpaceName) -> Option<String> {
    let is_other = named.is_some_and(|named| named != space.as_str());
    is_other.then(|| format!("space was ignored: a replacement stays in the space {space}"))
}

/// The result of a write into spaces. If it failed because one of them was closed or deleted meanwhile, the error says so: no retry
/// would help.
pub(super) async fn unless_closed<T>(
    services: &Services,
    caller: &Caller,
    spaces: impl IntoIterator<Item = SpaceName>,
    written: lkr::Result<T>,
) -> Result<T, ApiError> {
    let written = written.for_write();
    if written.as_ref().is_err_and(|error| error.code == ErrorCode::Overloaded)
        && let Ok(rights) = services.rights_to_write(Some(caller)).await
    {
        spaces.into_iter().try_for_each(|space| rights.check_writable(&space))?;
    }
    written
}

/// Applies the client's options to a submission. Callers other than managers of the space may replace only their own
/// documents.
fn apply(
    options: SubmissionOptions,
    submission: Submission,
    rights: &Rights,
) -> Result<Submission, ApiError> {
    let space = options.space.map(named_space).transpose()?.unwrap_or_default();
    rights.check_writable(&space)?;
    let upsert = if rights.may_manage(&space) { Upsert::Any } else { Upsert::Own };
    Ok(Submission {
        dedup: if options.force { Dedup::None } else { submission.dedup },
        upsert: options.upsert.then_some(upsert),
        expectations: Spaces::admit(&space).into(),
        space,
        ..submission
    })
}

/// The submission of a caller's new document by the current settings and the client's options.
pub(super) async fn submission(
    services: &Services,
    caller: &Caller,
    options: SubmissionOptions,
) -> Result<Submission, ApiError> {
    apply(options, common_submission(services, caller).await?, &services.rights_to_write(Some(caller)).await?)
}

/// The submission of a caller's documents by the current settings.
pub(super) async fn common_submission(services: &Services, caller: &Caller) -> Result<Submission, ApiError> {
    let settings = services.settings.current().await?;
    let dedup = match settings.settings.dedup.strategy {
        DedupStrategy::None => Dedup::None,
        DedupStrategy::Simhash => {
            Dedup::Simhash { threshold: settings.settings.dedup.simhash_threshold.into() }
        }
        _ => Dedup::Sha256,
    };
    let actor = caller.clone();
    let on_replace = OnReplace::new(move |doc_id: DocId| {
        let entry =
            AuditLog::entry(actor.actor(), AuditAction::DocumentReplace, &doc_id.to_string(), Map::new());
        entry
            .map_err(|error| tracing::error!(%error, "cannot create the audit entry of a replacement; it is not logged"))
            .into_iter()
            .collect()
    });
    let origin = traces::current_traceparent();
    Ok(Submission { dedup, on_replace, origin, ..Submission::by(caller.creator()) })
}

/// The idempotency key of a request, scoped to the account or the API key, and to the endpoint.
pub(super) fn idempotency(
    cx: &RequestContext,
    caller: &Caller,
    endpoint: &'static str,
) -> Result<Option<Idempotency>, ApiError> {
    let mut keys = cx.header(IDEMPOTENCY_KEY);
    let Some(key) = keys.next() else { return Ok(None) };
    let length = key.chars().count();
    if keys.next().is_some() || !(1..=MAX_KEY_CHARS).contains(&length) {
        let reason =
            format!("the header Idempotency-Key must be given once, with 1 to {MAX_KEY_CHARS} characters");
        return Err(ApiError::invalid(reason));
    }
    // A key's requests are independent of those of its owner.
    let account = match &caller.credential {
        Credential::Key { id, .. } => format!("key {id}"),
        Credential::Session => caller.account.id.clone(),
    };
    Ok(Some(Idempotency { account, endpoint, key: key.to_owned() }))
}

/// The tasks that an earlier request with the same key created.
pub(super) async fn replayed_tasks(
    cx: &RequestContext,
    idempotency: Option<&Idempotency>,
) -> Result<Option<Vec<Task>>, ApiError> {
    match idempotency {
        Some(idempotency) => cx.services()?.kb.tasks_by_idempotency_key(idempotency).await.for_write(),
        None => Ok(None),
    }
}

pub(super) fn first(tasks: Option<Vec<Task>>) -> Option<Task> {
    tasks.and_then(|tasks| tasks.into_iter().next())
}

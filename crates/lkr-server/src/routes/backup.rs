//! Backups.

use std::{io, time::Duration};

use actix_web::{
    HttpResponse,
    http::{Method, header},
    web::Bytes,
};
use futures_util::{Stream, StreamExt, stream};
use lkr::backup::{Backup, BackupProblems};
use lkr_auth::{AuditAction, AuditLog};
use serde_json::Map;
use time::{OffsetDateTime, macros::format_description};
use tokio_util::io::ReaderStream;

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        Admin, ApiResponse, Endpoint, HandlerResult, Recheck, RequestContext, StreamSubject, WriteTimeout,
        permission_lost, while_permitted,
    },
    openapi::{OperationDoc, ResponseShape},
};

/// How long a client may accept no bytes of an archive. Garbage collection is paused while an archive is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// How many bytes of an archive are buffered.
const PIPE_BYTES: usize = 256 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = OperationDoc::new(
        "Operations",
        "get_backup",
        "Returns a consistent archive of everything: a tar file with checksums. `lkr restore` restores it",
        ResponseShape::Raw("application/x-tar"),
    )
    .header("Content-Disposition", "attachment, with the time in its name.")
    .errors(&[ErrorCode::Overloaded]);
    vec![Endpoint::new(Method::GET, "/api/v1/backup", doc, backup)]
}

async fn backup(Admin(caller): Admin, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    if cx.request().method() == Method::HEAD {
        return Ok(ApiResponse::Raw(response_head()?.finish()));
    }
    let kb = &cx.services()?.kb;
    let backup = kb.backup().await.for_write()?;
    let entry = AuditLog::entry(caller.actor(), AuditAction::BackupCreate, "backup", Map::new())?;
    kb.state().apply(vec![entry]).await.map_err(|error| ApiError::internal(&error))?;
    let bytes = while_permitted(
        cx,
        (StreamSubject::Service, Recheck::Interval),
        archive_bytes(backup),
        permission_lost,
    );
    Ok(ApiResponse::Raw(response_head()?.streaming(bytes)))
}

/// The status and headers of a response with an archive.
fn response_head() -> Result<actix_web::HttpResponseBuilder, ApiError> {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let now = OffsetDateTime::now_utc().format(&format).map_err(|error| ApiError::internal(&error))?;
    let mut response = HttpResponse::Ok();
    response
        .content_type("application/x-tar")
        .insert_header((
            header::CONTENT_DISPOSITION,
            format!("attachment; filename=\"lkr-backup-{now}.tar\""),
        ))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response)
}

/// The bytes of an archive as they are made. On a failure the stream ends with an error, so that a partial archive is not
/// mistaken for a complete one.
fn archive_bytes(backup: Backup) -> impl Stream<Item = io::Result<Bytes>> {
    let (to, from) = tokio::io::duplex(PIPE_BYTES);
    let writing = tokio::spawn(async move { backup.write(WriteTimeout::new(to, WRITE_TIMEOUT)).await });
    let end = stream::once(async move {
        let failure = match writing.await {
            Ok(Ok(done)) => {
                let BackupProblems { missing, damaged } = done.problems;
                missing
                    .iter()
                    .for_each(|path| tracing::error!(path, "backup is incomplete: a blob cannot be read"));
                damaged.iter().for_each(|path| tracing::error!(path, "backup contains a damaged blob"));
                return None;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(failure, "backup failed; the response was cut off");
        Some(Err(io::Error::other(failure)))
    });
    ReaderStream::with_capacity(from, PIPE_BYTES).chain(end.filter_map(async |end| end))
}

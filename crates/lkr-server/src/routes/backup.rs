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
    error::{ApiError, Code, Failing},
    http::{Admin, Answer, Cx, Endpoint, Patient, Reply},
    openapi::{Doc, Shape},
};

/// How long somebody may take nothing of an archive: as long as it is written, nothing that is deleted is collected.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much of an archive waits to be sent.
const PIPE_BYTES: usize = 256 * 1024;

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = Doc::new(
        "Operations",
        "get_backup",
        "An archive of everything as it is now: a tar file with checksums. `lkr restore` puts it back",
        Shape::Bare("application/x-tar"),
    )
    .header("Content-Disposition", "attachment, with a name that tells when.")
    .errors(&[Code::Overloaded]);
    vec![Endpoint::new(Method::GET, "/api/v1/backup", doc, backup)]
}

async fn backup(Admin(caller): Admin, cx: Cx) -> Answer {
    cx.no_query()?;
    if cx.request().method() == Method::HEAD {
        return Ok(Reply::Bare(archive()?.finish()));
    }
    let kb = &cx.services()?.kb;
    let backup = kb.backup().await.writing()?;
    let entry = AuditLog::entry(caller.by(), AuditAction::BackupCreate, "backup", Map::new())?;
    kb.state().apply(vec![entry]).await.map_err(|error| ApiError::internal(&error))?;
    Ok(Reply::Bare(archive()?.streaming(written(backup))))
}

/// The head of an answer with an archive.
fn archive() -> Result<actix_web::HttpResponseBuilder, ApiError> {
    let form = format_description!("[year][month][day]T[hour][minute][second]Z");
    let now = OffsetDateTime::now_utc().format(&form).map_err(|error| ApiError::internal(&error))?;
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

/// The bytes of an archive as they are made. Where that fails they are broken off, so that nobody takes them for whole.
fn written(backup: Backup) -> impl Stream<Item = io::Result<Bytes>> {
    let (to, from) = tokio::io::duplex(PIPE_BYTES);
    let writing = tokio::spawn(async move { backup.write(Patient::new(to, PATIENCE)).await });
    let end = stream::once(async move {
        let failure = match writing.await {
            Ok(Ok(done)) => {
                let BackupProblems { missing, damaged } = done.faults;
                missing.iter().for_each(|path| tracing::error!(path, "a backup lacks what cannot be read"));
                damaged.iter().for_each(|path| tracing::error!(path, "a backup holds what is damaged"));
                return None;
            }
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::error!(failure, "a backup was broken off");
        Some(Err(io::Error::other(failure)))
    });
    ReaderStream::with_capacity(from, PIPE_BYTES).chain(end.filter_map(async |end| end))
}

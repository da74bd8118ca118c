//! Uploads and downloads of files.

mod metadata;

use std::collections::BTreeMap;

use actix_web::{
    HttpResponse,
    body::SizedStream,
    http::{Method, StatusCode, header},
};
use futures_util::StreamExt;
use lkr::{
    Document, NewFile, Original, Scope, StoredOriginal, Submission, check_line, check_properties,
    drop_reserved,
    files::{Extracted, FileErrorKind, FileSource, extracted_text},
};
use lkr_domain::{content_type, stem_and_suffix};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt, without_paths},
    http::{
        ApiResponse, Authenticated, Caller, Endpoint, Form, FormFile, FormRules, HandlerResult,
        OwnedDocument, Owner, QuotaShare, Reader, Recheck, RequestContext, StreamSubject, named_space,
        permission_lost, unknown_document, while_permitted,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    plugins::selected_plugins,
    routes::submissions::{
        IDEMPOTENCY, MAX_KEY_CHARS, common_submission, first, idempotency, ignored_space, replayed_tasks,
        submission, unless_closed,
    },
    state::Services,
    wire::{
        document_input::limit_exceeded,
        files::{ReplaceForm, UploadAccepted, UploadForm},
        range::{RequestedPart, content_disposition, requested_part},
        submission_options::SubmissionOptions,
    },
};

/// The length of all text parts: the longest properties with each byte escaped to six.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/upload",
            OperationDoc::new(
                "Documents",
                "upload_document",
                "Accepts a file for ingestion: text, Markdown, HTML, PDF or DOCX",
                ResponseShape::Envelope(schema::<UploadAccepted>()),
            )
            .status(StatusCode::ACCEPTED)
            .idempotency_key(IDEMPOTENCY.0, IDEMPOTENCY.1, MAX_KEY_CHARS)
            .form::<UploadForm>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            upload,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/documents/{doc_id}/file",
            OperationDoc::new(
                "Documents",
                "replace_file",
                "Accepts a file that replaces a document's content. A search sees the old version or the new one, never a mix",
                ResponseShape::Envelope(schema::<UploadAccepted>()),
            )
            .status(StatusCode::ACCEPTED)
            .form::<ReplaceForm>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            replace,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/file",
            OperationDoc::new(
                "Documents",
                "get_file",
                "Returns the file that a document was uploaded as, or a range of its bytes",
                ResponseShape::File,
            )
            .request_header("Range", "One range of bytes, such as bytes=0-99.")
            .request_header("If-Match", "Return the file only if its ETag is one of these.")
            .request_header("If-Range", "Return the range only if the file has this ETag, else the whole file.")
            .request_header("If-None-Match", "Return 304 if the file's ETag is one of these.")
            .header("ETag", "The version of the file.")
            .header("Accept-Ranges", "bytes.")
            .header("Content-Disposition", "attachment, with the file's name.")
            .also_status(StatusCode::PARTIAL_CONTENT, "The requested range.")
            .also_status(StatusCode::NOT_MODIFIED, "The client has this version of the file.")
            .also_error(StatusCode::RANGE_NOT_SATISFIABLE, ErrorCode::Invalid)
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            download,
        ),
    ]
}

async fn upload(Authenticated(caller): Authenticated, mut cx: RequestContext) -> HandlerResult {
    let idempotency = idempotency(&cx, &caller, "upload")?;
    if let Some(task) = first(replayed_tasks(&cx, idempotency.as_ref()).await?) {
        return ApiResponse::accepted(&UploadAccepted::from(&task));
    }
    let upload = read_upload(&mut cx, &caller, UploadTarget::NewDocument).await?;
    let Upload { file, warnings, options, spooled: _spooled } = upload;
    let submission = Submission {
        warnings,
        idempotency,
        ..submission(cx.services()?, &cx.current(caller.clone()), options).await?
    };
    let (services, space) = (cx.services()?, submission.space.clone());
    let accepted = services.kb.submit_file(file, submission).await;
    let task = unless_closed(services, &caller, [space], accepted).await?;
    ApiResponse::accepted(&UploadAccepted::from(&task))
}

async fn replace(owner: Owner, mut cx: RequestContext) -> HandlerResult {
    let (OwnedDocument { doc_id, space }, caller) = (owner.document()?.clone(), &owner.caller);
    // Do not parse a file for an unknown document.
    cx.services()?.kb.document(doc_id).await.for_write()?.ok_or_else(unknown_document)?;
    let upload = read_upload(&mut cx, caller, UploadTarget::Replacement).await?;
    let Upload { file, mut warnings, options, spooled: _spooled } = upload;
    warnings.extend(ignored_space(options.space.as_deref(), &space));
    let submission = Submission { warnings, ..common_submission(cx.services()?, caller).await? };
    let task = cx.services()?.kb.replace_file(doc_id, file, submission).await.for_write()?;
    ApiResponse::accepted(&UploadAccepted::from(&task.ok_or_else(unknown_document)?))
}

/// An uploaded file with its extracted text.
struct Upload {
    file: NewFile,
    warnings: Vec<String>,
    options: SubmissionOptions,
    /// Its place among the uploads of its account, until it is stored.
    spooled: QuotaShare,
}

/// What an uploaded file becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UploadTarget {
    NewDocument,
    Replacement,
}

/// The parts of the form beside the file. A replacement takes all of them, so that one form serves both; `force` and `upsert` change
/// nothing about it.
const TEXTS: [&str; 6] = ["title", "source", "metadata", "space", "force", "upsert"];

/// Reads the form of an upload and parses its file.
async fn read_upload(
    cx: &mut RequestContext,
    caller: &Caller,
    target: UploadTarget,
) -> Result<Upload, ApiError> {
    let services = cx.services()?.clone();
    let state = cx.state_data();
    let rules = FormRules {
        file: "file",
        texts: &TEXTS,
        max_text_bytes: MAX_TEXT_BYTES,
        extensions: &state.options.upload_extensions,
        max_file_bytes: state.options.upload_max_bytes,
        spool: services.files.spool(),
    };
    let Form { file, mut texts, spooled } = cx.form(&rules).await?;
    check_line("the file's name", &file.name).map_err(limit_exceeded)?;
    let space = texts.remove("space").map(|space| utf8("space", space)).transpose()?;
    let options = SubmissionOptions {
        force: boolean("force", &mut texts)?,
        upsert: boolean("upsert", &mut texts)?,
        space: space.filter(|space| !space.is_empty()),
    };
    // Do not parse a file for a space that the caller may not write to.
    if target == UploadTarget::NewDocument {
        let space = options.space.clone().map(named_space).transpose()?.unwrap_or_default();
        cx.rights_to_write(Some(caller)).await?.check_writable(&space)?;
    }
    let extracted = extract(&services, &caller.account.id, &file).await?;
    cx.admit_again().await?;
    let mut warnings = warnings_of(&extracted);
    let file = new_file(file, texts, extracted, &mut warnings)?;
    Ok(Upload { file, warnings, options, spooled })
}

/// A part that is true or false; false if it is absent or empty.
fn boolean(name: &str, texts: &mut BTreeMap<&str, Vec<u8>>) -> Result<bool, ApiError> {
    let text = texts.remove(name).unwrap_or_default();
    match text.trim_ascii() {
        b"true" => Ok(true),
        b"false" | b"" => Ok(false),
        other => {
            let shown: String = String::from_utf8_lossy(other).chars().take(40).collect();
            Err(ApiError::invalid(format!("{name} is {shown:?}: expected true or false")))
        }
    }
}

/// The text of a file, parsed with the plugins that the settings select.
async fn extract(services: &Services, account_id: &str, file: &FormFile) -> Result<Extracted, ApiError> {
    let plugins = selected_plugins(&services.settings.current().await?.settings.parsers);
    let source = FileSource {
        file_name: file.name.clone(),
        media_type: file.media_type.clone(),
        file: file.file.try_clone().map_err(|error| ApiError::internal(&error))?,
        length: file.length,
    };
    let extracted = services.files.read_for(account_id, source, &plugins).await;
    let extracted = extracted.map_err(|error| parse_error(&file.name, error))?;
    check_text(&file.name, &extracted)?;
    Ok(extracted)
}

/// The document of a form, with checked properties.
fn new_file(
    file: FormFile,
    mut texts: BTreeMap<&str, Vec<u8>>,
    extracted: Extracted,
    warnings: &mut Vec<String>,
) -> Result<NewFile, ApiError> {
    let FormFile { name, file, length, .. } = file;
    let mut metadata = metadata::parse(&texts.remove("metadata").unwrap_or_default(), warnings);
    drop_reserved(&mut metadata, warnings);
    let mut text = |name| utf8(name, texts.remove(name).unwrap_or_default());
    let title = Some(text("title")?).filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or_else(|| stem_and_suffix(&name).0.to_owned());
    let (source, named) = match text("source")? {
        given if !given.is_empty() => (given, "source"),
        _ => (format!("file:{name}"), "the source made from the file name"),
    };
    check_line("title", &title).map_err(limit_exceeded)?;
    check_line(named, &source).map_err(limit_exceeded)?;
    check_properties(&title, &source, &metadata).map_err(limit_exceeded)?;
    let extracted = extracted_text(extracted);
    Ok(NewFile { file_name: name, file, size_bytes: length, extracted, title, source, metadata })
}

fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, ApiError> {
    String::from_utf8(bytes).map_err(|_| ApiError::invalid(format!("{name} is not UTF-8")))
}

/// The parser's warnings without paths of the server.
fn warnings_of(extracted: &Extracted) -> Vec<String> {
    extracted.warnings().iter().map(|warning| without_paths(warning)).collect()
}

/// The error of a file that cannot be parsed. It names the file if the file is invalid.
fn parse_error(name: &str, error: lkr::Error) -> ApiError {
    let message = || format!("{name} cannot be read: {}", error.reason());
    match (error.kind(), lkr::files::refusal(&error)) {
        (_, Some(FileErrorKind::TooMuchText)) => ApiError::too_large(message()),
        (lkr::ErrorKind::Invalid, _) => ApiError::invalid(message()),
        _ => ApiError::from(error),
    }
}

/// Refuses a file without text. The error contains the parser's warnings.
fn check_text(name: &str, extracted: &Extracted) -> Result<(), ApiError> {
    if !extracted.is_blank() {
        return Ok(());
    }
    let warnings = warnings_of(extracted).join("; ");
    let reason = if warnings.is_empty() { "it contains only white space" } else { &warnings };
    Err(ApiError::invalid(format!("{name} has no text: {reason}")))
}

async fn download(reader: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let scope = cx.rights_to_write(reader.0.as_ref()).await?.readable();
    let kb = &cx.services()?.kb;
    let document = kb.document_in(&scope, cx.doc_id()?).await.for_read()?.ok_or_else(unknown_document)?;
    let no_file = || ApiError::not_found("the document has no stored file");
    let original = document.original.clone().ok_or_else(no_file)?;
    let missing = || ApiError::not_found("the stored file is missing");
    let stored = kb.original(&document).await.for_write()?.ok_or_else(missing)?;
    file_response(cx, &document, &original, &stored).await
}

async fn file_response(
    cx: RequestContext,
    document: &Document,
    original: &Original,
    stored: &StoredOriginal,
) -> HandlerResult {
    let etag = format!("\"{}-{}\"", document.doc_id, document.revision);
    let part = requested_part(cx.request(), &etag, stored.size_bytes)?;
    let mut response = HttpResponse::build(part.status());
    response
        .insert_header((header::ETAG, etag))
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::CACHE_CONTROL, "private, no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((header::CONTENT_DISPOSITION, content_disposition(&original.file_name)));
    let range = match part {
        RequestedPart::NotModified => return Ok(ApiResponse::Raw(response.finish())),
        RequestedPart::Whole => 0..stored.size_bytes,
        RequestedPart::Range(range) => {
            let (first, last) = (range.start, range.end.saturating_sub(1));
            let content_range = format!("bytes {first}-{last}/{}", stored.size_bytes);
            response.insert_header((header::CONTENT_RANGE, content_range));
            range
        }
    };
    response.content_type(content_type(&original.file_name));
    let length = range.end.saturating_sub(range.start);
    if length == 0 {
        return Ok(ApiResponse::Raw(response.finish()));
    }
    let internal = |error| ApiError::internal(&error);
    let bytes = if length == stored.size_bytes {
        stored.read_verified(original.sha256.as_deref()).await.map_err(internal)?.boxed()
    } else {
        stored.read_part(range, original).await.map_err(internal)?.boxed()
    };
    let subject = StreamSubject::Spaces(Scope::of(document.space.clone()));
    let bytes = while_permitted(cx, (subject, Recheck::Interval), bytes, permission_lost);
    Ok(ApiResponse::Raw(response.body(SizedStream::new(length, Box::pin(bytes)))))
}

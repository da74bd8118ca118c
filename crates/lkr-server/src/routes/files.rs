mod metadata;

use std::collections::BTreeMap;

use actix_web::{
    HttpResponse,
    body::SizedStream,
    http::{Method, StatusCode, header},
};
use futures_util::StreamExt;
use lkr::{
    Document, NewFile, Original, StoredOriginal, Submission, check_properties, drop_reserved,
    files::{Extracted, FileSource, extracted_text},
};
use lkr_domain::stem_and_suffix;

use crate::{
    error::{ApiError, Code, Failing, without_paths},
    http::{Answer, Cx, Endpoint, Form, FormFile, FormRules, Member, Owner, Reader, Reply, unknown_document},
    openapi::{Doc, Shape, schema},
    plugins::chosen,
    routes::{
        Flags,
        submissions::{IDEMPOTENCY, idempotency, only, remembered, submission},
    },
    state::Services,
    wire::{
        document_input::{check_line, refused_properties},
        documents::content_type,
        files::{ReplaceForm, UploadAccepted, UploadForm},
        range::{Part, asked, disposition},
    },
};

/// The longest text part: properties at their most, every byte written as an escape of six.
const MAX_TEXT_BYTES: usize = 2 * 1024 * 1024;

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/upload",
            Doc::new(
                "Documents",
                "upload_document",
                "Accepts a file for ingestion: text, Markdown, HTML, PDF or DOCX",
                Shape::Envelope(schema::<UploadAccepted>()),
            )
            .status(StatusCode::ACCEPTED)
            .request_header(IDEMPOTENCY.0, IDEMPOTENCY.1)
            .form::<UploadForm>(),
            upload,
        ),
        Endpoint::new(
            Method::PUT,
            "/api/v1/documents/{doc_id}/file",
            Doc::new(
                "Documents",
                "replace_file",
                "Accepts a file in place of a document's content; searches see all of the old or all of the new",
                Shape::Envelope(schema::<UploadAccepted>()),
            )
            .status(StatusCode::ACCEPTED)
            .form::<ReplaceForm>()
            .errors(&[Code::NotFound]),
            replace,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/file",
            Doc::new(
                "Documents",
                "get_file",
                "The file that a document was uploaded as, whole or a range of its bytes",
                Shape::File,
            )
            .request_header("Range", "One range of bytes, such as bytes=0-99.")
            .request_header("If-Match", "Answer only where the file's ETag is one of these.")
            .request_header("If-Range", "The ETag under which the range is wanted.")
            .request_header("If-None-Match", "The ETag under which the file is known.")
            .header("ETag", "Tells the file from others.")
            .header("Accept-Ranges", "bytes.")
            .header("Content-Disposition", "attachment, with the file's name.")
            .also(StatusCode::PARTIAL_CONTENT, "the range that was asked for")
            .also(StatusCode::NOT_MODIFIED, "the file is the one that is known")
            .refuses(StatusCode::RANGE_NOT_SATISFIABLE, Code::Invalid)
            .errors(&[Code::NotFound, Code::Conflict]),
            download,
        ),
    ]
}

async fn upload(Member(caller): Member, mut cx: Cx) -> Answer {
    let idempotency = idempotency(&cx, &caller, "upload")?;
    if let Some(task) = only(remembered(&cx, idempotency.as_ref()).await?) {
        return Reply::accepted(&UploadAccepted::from(&task));
    }
    let Sent { file, warnings, flags } =
        sent(&mut cx, &["title", "source", "metadata", "force", "upsert"]).await?;
    let submission = Submission { warnings, idempotency, ..submission(&cx, &caller, flags).await? };
    let task = cx.services()?.kb.submit_file(file, submission).await.writing()?;
    Reply::accepted(&UploadAccepted::from(&task))
}

async fn replace(Owner(caller): Owner, mut cx: Cx) -> Answer {
    let doc_id = cx.doc_id()?;
    // Nobody reads a file for what is not there.
    cx.services()?.kb.document(doc_id).await.writing()?.ok_or_else(unknown_document)?;
    let Sent { file, warnings, flags } = sent(&mut cx, &["title", "source", "metadata"]).await?;
    let submission = Submission { warnings, ..submission(&cx, &caller, flags).await? };
    let task = cx.services()?.kb.replace_file(doc_id, file, submission).await.writing()?;
    Reply::accepted(&UploadAccepted::from(&task.ok_or_else(unknown_document)?))
}

/// A file as it was sent, read.
struct Sent {
    file: NewFile,
    warnings: Vec<String>,
    flags: Flags,
}

/// Takes a form and reads its file.
async fn sent(cx: &mut Cx, texts: &'static [&'static str]) -> Result<Sent, ApiError> {
    let services = cx.services()?.clone();
    let state = cx.state_data();
    let rules = FormRules {
        file: "file",
        texts,
        max_text_bytes: MAX_TEXT_BYTES,
        extensions: &state.options.upload_extensions,
        max_file_bytes: state.options.upload_max_bytes,
        spool: services.files.spool(),
    };
    let Form { file, mut texts } = cx.form(&rules).await?;
    check_line("the file's name", &file.name)?;
    let flags = Flags { force: flag("force", &mut texts)?, upsert: flag("upsert", &mut texts)? };
    let extracted = extract(&services, &file).await?;
    cx.admit_again().await?;
    let mut warnings = warnings_of(&extracted);
    let file = new_file(file, texts, extracted, &mut warnings)?;
    Ok(Sent { file, warnings, flags })
}

/// A part that says yes or no; no where there is none, or nothing in it.
fn flag(name: &str, texts: &mut BTreeMap<&str, Vec<u8>>) -> Result<bool, ApiError> {
    let text = texts.remove(name).unwrap_or_default();
    match text.trim_ascii() {
        b"true" => Ok(true),
        b"false" | b"" => Ok(false),
        other => {
            let shown: String = String::from_utf8_lossy(other).chars().take(40).collect();
            Err(ApiError::invalid(format!("{name} is {shown:?}: true or false is needed")))
        }
    }
}

/// The text of a file, read with the plugins that the settings choose.
async fn extract(services: &Services, file: &FormFile) -> Result<Extracted, ApiError> {
    let plugins = chosen(&services.settings.current().await?.settings.parsers);
    let source = FileSource {
        file_name: file.name.clone(),
        media_type: file.media_type.clone(),
        file: file.file.try_clone().map_err(|error| ApiError::internal(&error))?,
        length: file.length,
    };
    let extracted = services.files.read(source, &plugins).await;
    let extracted = extracted.map_err(|error| about_file(&file.name, error))?;
    check_text(&file.name, &extracted)?;
    Ok(extracted)
}

/// The document that a form asks for, its properties checked.
fn new_file(
    file: FormFile,
    mut texts: BTreeMap<&str, Vec<u8>>,
    extracted: Extracted,
    warnings: &mut Vec<String>,
) -> Result<NewFile, ApiError> {
    let FormFile { name, file, length, .. } = file;
    let mut metadata = metadata::read(&texts.remove("metadata").unwrap_or_default(), warnings);
    drop_reserved(&mut metadata, warnings);
    let mut text = |name| utf8(name, texts.remove(name).unwrap_or_default());
    let title = Some(text("title")?).filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or_else(|| stem_and_suffix(&name).0.to_owned());
    let source = Some(text("source")?).filter(|source| !source.is_empty());
    let source = source.unwrap_or_else(|| format!("file:{name}"));
    check_line("title", &title)?;
    check_line("source", &source)?;
    check_properties(&title, &source, &metadata).map_err(refused_properties)?;
    let extracted = extracted_text(extracted);
    Ok(NewFile { file_name: name, file, size_bytes: length, extracted, title, source, metadata })
}

fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, ApiError> {
    String::from_utf8(bytes).map_err(|_| ApiError::invalid(format!("{name} is not UTF-8")))
}

/// What a parser warns of, for everybody to read.
fn warnings_of(extracted: &Extracted) -> Vec<String> {
    extracted.warnings().iter().map(|warning| without_paths(warning)).collect()
}

/// A failure to read a file, with the file's name where the file is at fault.
fn about_file(name: &str, error: lkr::Error) -> ApiError {
    match error.kind() {
        lkr::ErrorKind::Invalid => ApiError::invalid(format!("{name} cannot be read: {}", error.reason())),
        _ => ApiError::from(error),
    }
}

/// Refuses a file without text, with what its parser said of it.
fn check_text(name: &str, extracted: &Extracted) -> Result<(), ApiError> {
    if !extracted.is_blank() {
        return Ok(());
    }
    let said = warnings_of(extracted).join("; ");
    let reason = if said.is_empty() { "nothing but white space was found in it" } else { &said };
    Err(ApiError::invalid(format!("{name} has no text: {reason}")))
}

async fn download(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let kb = &cx.services()?.kb;
    let document = kb.document(cx.doc_id()?).await.reading()?.ok_or_else(unknown_document)?;
    let none = || ApiError::not_found("the document has no stored file");
    let original = document.original.clone().ok_or_else(none)?;
    let missing = || ApiError::not_found("the stored file is missing");
    let stored = kb.original(&document).await.writing()?.ok_or_else(missing)?;
    answer(&cx, &document, &original, &stored).await
}

async fn answer(cx: &Cx, document: &Document, original: &Original, stored: &StoredOriginal) -> Answer {
    let etag = format!("\"{}-{}\"", document.doc_id, document.revision);
    let part = asked(cx.request(), &etag, stored.size_bytes)?;
    let mut response = HttpResponse::build(part.status());
    response
        .insert_header((header::ETAG, etag))
        .insert_header((header::ACCEPT_RANGES, "bytes"))
        .insert_header((header::CACHE_CONTROL, "private, no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"))
        .insert_header((header::CONTENT_DISPOSITION, disposition(&original.file_name)));
    let is_whole = matches!(part, Part::Whole);
    let range = match part {
        Part::Known => return Ok(Reply::Bare(response.finish())),
        Part::Whole => 0..stored.size_bytes,
        Part::Range(range) => {
            let (first, last) = (range.start, range.end.saturating_sub(1));
            let told = format!("bytes {first}-{last}/{}", stored.size_bytes);
            response.insert_header((header::CONTENT_RANGE, told));
            range
        }
    };
    response.content_type(content_type(&original.file_name));
    let length = range.end.saturating_sub(range.start);
    if length == 0 {
        return Ok(Reply::Bare(response.finish()));
    }
    let internal = |error| ApiError::internal(&error);
    let sha256 = original.sha256.as_deref();
    let bytes = if is_whole {
        stored.whole(sha256).await.map_err(internal)?.boxed()
    } else {
        stored.check(sha256).await.map_err(internal)?;
        stored.read(range).await.map_err(internal)?.boxed()
    };
    Ok(Reply::Bare(response.body(SizedStream::new(length, bytes))))
}

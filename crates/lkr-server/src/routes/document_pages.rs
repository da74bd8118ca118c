//! The pages of stored PDF files: their images, and where a text is on them.

use std::sync::Arc;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode, header},
};
use bytes::Bytes;
use futures_util::TryStreamExt;
use lkr::{
    Document, StoredOriginal,
    files::{FileErrorKind, FileSource, Format, Passage, PlacedText, refusal},
};
use tokio::io::AsyncWriteExt;

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Client, Endpoint, HandlerResult, QuotaShare, Reader, RequestContext, unknown_document,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    page_cache::{PageKey, PageView},
    wire::{document_pages::PageBoxes, range::is_not_modified},
};

/// The width of an image in pixels, if the request names none.
const DEFAULT_WIDTH: u32 = 1_000;
const WIDTHS: std::ops::RangeInclusive<u32> = 200..=2_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/pages/{n}",
            OperationDoc::new(
                "Documents",
                "get_page",
                "Returns a page of the PDF file that a document was uploaded as, as an image",
                ResponseShape::Raw("image/png"),
            )
            .query_number(
                "width",
                "The width of the image in pixels. A page that is very tall gets a smaller one.",
                WIDTHS,
                DEFAULT_WIDTH,
            )
            .query_text(
                "version",
                "Ignored. With an address for each version of a document, a browser shows no earlier one.",
            )
            .request_header("If-None-Match", "Return 304 if the image's ETag is one of these.")
            .header("ETag", "The version of the image.")
            .also_status(StatusCode::NOT_MODIFIED, "The client has this version of the image.")
            .errors(&[ErrorCode::NotFound]),
            image,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/pages/{n}/boxes",
            OperationDoc::new(
                "Documents",
                "get_page_boxes",
                "Returns where a part of a document's text is on a page of its PDF file",
                ResponseShape::Envelope(schema::<PageBoxes>()),
            )
            .query_position(
                "char_start",
                "The position of the first code point in the document's extracted text.",
            )
            .query_position("char_end", "The position after the last code point.")
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            boxes,
        ),
    ]
}

async fn image(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let width = query.number("width", "a whole number from 200 to 2000", WIDTHS)?.unwrap_or(DEFAULT_WIDTH);
    query.text("version");
    query.finish()?;
    let (page, pdf) = (page_number(&cx)?, stored_pdf(&reader, &cx).await?);
    let Document { doc_id, revision, .. } = &pdf.document;
    let etag = format!("\"{doc_id}-{revision}-{page}-{width}-{}\"", pdf.page_reader);
    let mut response = HttpResponse::Ok();
    response
        .insert_header((header::ETAG, etag.as_str()))
        .insert_header((header::CACHE_CONTROL, "private, no-cache"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"));
    if is_not_modified(cx.request().headers(), &etag) {
        return Ok(ApiResponse::Raw(response.status(StatusCode::NOT_MODIFIED).finish()));
    }
    let png = page_image(&reader, &cx, &pdf, page, width).await?;
    cx.reserve(png.len() as u64).await?;
    Ok(ApiResponse::Raw(response.content_type("image/png").body(png)))
}

async fn boxes(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let mut position = |name| {
        let missing = || ApiError::invalid_parameter(name, "is missing");
        query.number(name, "a whole number", 0..=u32::MAX)?.ok_or_else(missing)
    };
    let (start, end) = (position("char_start")?, position("char_end")?);
    query.finish()?;
    if start > end {
        return Err(ApiError::invalid_parameter(
            "char_end",
            format!("{end} is before char_start, which is {start}"),
        ));
    }
    let (page, pdf) = (page_number(&cx)?, stored_pdf(&reader, &cx).await?);
    let places = page_places(&reader, &cx, &pdf, page).await?;
    ApiResponse::ok(&PageBoxes::new(&places, start..end))
}

/// A document whose original is a PDF file.
struct StoredPdf {
    document: Document,
    stored: StoredOriginal,
    /// The name of what shows its pages.
    page_reader: &'static str,
}

/// The document that the path names, if the caller may read it and its pages can be shown.
async fn stored_pdf(reader: &Reader, cx: &RequestContext) -> Result<StoredPdf, ApiError> {
    let services = cx.services()?;
    let document = readable_document(reader, cx).await?;
    let original =
        document.original.as_ref().ok_or_else(|| ApiError::not_found("the document has no stored file"))?;
    if Format::from_file_name(&original.file_name) != Some(Format::Pdf) {
        return Err(ApiError::not_found("the document's file is not a PDF file, so it has no pages"));
    }
    let no_reader = || {
        ApiError::not_found(
            "pages of PDF files cannot be shown here: LKR_PDFIUM_LIBRARY names no library of PDFium",
        )
    };
    let page_reader = services.files.tools().page_reader().ok_or_else(no_reader)?;
    let stored = services.kb.original(&document).await.for_write()?;
    let stored = stored.ok_or_else(|| ApiError::not_found("the stored file is missing"))?;
    Ok(StoredPdf { document, stored, page_reader })
}

async fn readable_document(reader: &Reader, cx: &RequestContext) -> Result<Document, ApiError> {
    let scope = cx.rights_to_write(reader.0.as_ref()).await?.readable();
    cx.services()?.kb.document_in(&scope, cx.doc_id()?).await.for_write()?.ok_or_else(unknown_document)
}

/// The page that the path names, from 1.
fn page_number(cx: &RequestContext) -> Result<u32, ApiError> {
    let text = cx.path_part("n");
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let page = text.parse().ok().filter(|page| *page > 0 && is_number);
    page.ok_or_else(|| ApiError::not_found("there is no such page: pages count from 1"))
}

async fn page_image(
    reader: &Reader,
    cx: &RequestContext,
    pdf: &StoredPdf,
    page: u32,
    width: u32,
) -> Result<Bytes, ApiError> {
    let key = PageKey::image(&pdf.document, page, width);
    if let Some(PageView::Image(png)) = cx.state().page_cache.get(&key) {
        return Ok(png);
    }
    let (_share, account) = page_share(cx)?;
    let files = &cx.services()?.files;
    let source = spool(cx, pdf).await?;
    let png =
        files.page_image(&account, source, page, width).await.map_err(|error| page_error(page, error))?;
    let png = Bytes::from(png);
    cx.state().page_cache.insert(key, PageView::Image(png.clone()));
    check_again(reader, cx).await?;
    Ok(png)
}

async fn page_places(
    reader: &Reader,
    cx: &RequestContext,
    pdf: &StoredPdf,
    page: u32,
) -> Result<Arc<PlacedText>, ApiError> {
    let key = PageKey::places(&pdf.document, page);
    if let Some(PageView::Places(places)) = cx.state().page_cache.get(&key) {
        return Ok(places);
    }
    let (_share, account) = page_share(cx)?;
    let files = &cx.services()?.files;
    let passages = passages(cx, &pdf.document, page).await?;
    let source = spool(cx, pdf).await?;
    let places = files.page_places(&account, source, page, passages).await;
    let places = Arc::new(places.map_err(|error| page_error(page, error))?);
    cx.state().page_cache.insert(key, PageView::Places(Arc::clone(&places)));
    check_again(reader, cx).await?;
    Ok(places)
}

/// The parts of a document's text that are on a page.
async fn passages(cx: &RequestContext, document: &Document, page: u32) -> Result<Vec<Passage>, ApiError> {
    cx.services()?.kb.page_passages(document, page).await.for_write()
}

/// Takes a place among the pages that are being shown, and names the account whose turn it takes.
fn page_share(cx: &RequestContext) -> Result<(QuotaShare, String), ApiError> {
    let mut share = cx.state().page_quota.share(cx.client().clone());
    if !share.grow_to(1) {
        return Err(ApiError::new(ErrorCode::Overloaded, "too many pages are being shown"));
    }
    let account = match cx.client() {
        Client::Account(id) => id.clone(),
        Client::Address(_) => String::new(),
    };
    Ok((share, account))
}

/// Copies a stored file to an unnamed one, from which a worker reads it.
async fn spool(cx: &RequestContext, pdf: &StoredPdf) -> Result<FileSource, ApiError> {
    let internal = |error: std::io::Error| ApiError::internal(&error);
    let spool = cx.services()?.files.spool().to_owned();
    let file = tokio::task::spawn_blocking(move || tempfile::tempfile_in(spool)).await;
    let file = file.map_err(|error| ApiError::internal(&error))?.map_err(internal)?;
    let mut copy = tokio::fs::File::from_std(file);
    let original = pdf.document.original.as_ref();
    let sha256 = original.and_then(|original| original.sha256.as_deref());
    let parts = pdf.stored.read_verified(sha256).await.map_err(|error| ApiError::internal(&error))?;
    let mut parts = std::pin::pin!(parts);
    let mut length = 0;
    while let Some(part) = parts.try_next().await.map_err(internal)? {
        copy.write_all(&part).await.map_err(internal)?;
        length += part.len() as u64;
    }
    copy.flush().await.map_err(internal)?;
    let file_name = original.map(|original| original.file_name.clone()).unwrap_or_default();
    Ok(FileSource { file_name, media_type: None, file: copy.into_std().await, length })
}

/// Checks the permission again: showing a page may take long, and a right may be taken away meanwhile.
async fn check_again(reader: &Reader, cx: &RequestContext) -> Result<(), ApiError> {
    cx.admit_again().await?;
    readable_document(reader, cx).await.map(drop)
}

/// The error of a page that cannot be shown.
fn page_error(page: u32, error: lkr::Error) -> ApiError {
    match refusal(&error) {
        Some(FileErrorKind::Input) => ApiError::not_found(error.reason()),
        Some(_) => ApiError::not_found(format!("page {page} cannot be shown: {}", error.reason())),
        None => ApiError::from(error),
    }
}

//! Listing, reading, changing and deleting documents.

use actix_web::http::Method;
use lkr::{Document, ListFilter, Original, Scope, SpaceName, files::Format};
use lkr_auth::{AuditAction, AuditLog};
use lkr_spaces::Spaces;
use serde_json::{Map, json};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Caller, Endpoint, HandlerResult, OwnedDocument, Owner, Reader, Recheck, RequestContext,
        StreamSubject, cursor, permission_lost, stream_envelope, unknown_document, while_permitted,
    },
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    routes::submissions::unless_closed,
    wire::{
        document_change::DocumentChangeInput,
        documents::{
            ChunkItem, ChunkList, DeletedDocument, DocumentDetail, DocumentList, DocumentText, L1Item,
        },
        filter_expr::FilterExprJson,
        filter_expr_schema::FilterExprInput,
    },
};

/// The largest body of a change: the longest properties with each byte escaped to six.
const CHANGE_BYTES: usize = 2 * 1024 * 1024;

/// The memory that a node takes while a response with it is built and sent.
const NODE_BYTES: u64 = 2 * 1024;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc =
        |id, summary, shape| OperationDoc::new("Documents", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents",
            doc("list_documents", "Lists documents, newest first", schema::<DocumentList>())
                .query_text(
                    "category",
                    "Only documents of this category. An empty value selects documents without a category.",
                )
                .query_text("source", "Only documents with this source.")
                .query_text("q", "Only documents whose title starts with this text.")
                .query_json::<FilterExprInput>(
                    "where",
                    "Only documents that match this expression: JSON of at most 16 KiB.",
                )
                .query_space("Only documents of this space.")
                .errors(&[ErrorCode::NotFound])
                .paged('d', CursorOf::Id),
            list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}",
            doc("get_document", "Returns a document with its nodes", schema::<DocumentDetail>())
                .errors(&[ErrorCode::NotFound]),
            get,
        ),
        Endpoint::new(
            Method::PATCH,
            "/api/v1/documents/{doc_id}",
            doc(
                "change_document",
                "Changes title, source, category, metadata and space of a document without ingesting it again",
                schema::<L1Item>(),
            )
            .body::<DocumentChangeInput>()
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/{doc_id}",
            doc(
                "delete_document",
                "Deletes a document and everything derived from it. For an unknown document all counts are 0",
                schema::<DeletedDocument>(),
            )
            .any_text("doc_id"),
            delete,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/chunks",
            doc("list_chunks", "Lists the chunks of a document in order", schema::<ChunkList>())
                .paged('c', CursorOf::Position)
                .errors(&[ErrorCode::NotFound]),
            chunks,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/text",
            doc("get_text", "Returns the extracted text of a document", schema::<DocumentText>())
                .errors(&[ErrorCode::NotFound]),
            text,
        ),
    ]
}

async fn list(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('d')?);
    let filter = ListFilter {
        category: query.text("category"),
        source: query.text("source"),
        title_prefix: query.text("q"),
        filter_expr: query.text("where").map(|text| FilterExprJson::from_query(&text)).transpose()?,
    };
    let space = query.space()?;
    query.finish()?;
    let scope = cx.rights(reader.0.as_ref()).await?.scope(space.as_deref())?;
    let page = cx.services()?.kb.list(&scope, &filter, after, limit as usize).await.for_read()?;
    ApiResponse::ok(&DocumentList::new(page.items, page.next.map(|id| cursor('d', id))))
}

async fn get(reader: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let scope = cx.rights(reader.0.as_ref()).await?.readable();
    let kb = &cx.services()?.kb;
    let document = kb.document_in(&scope, cx.doc_id()?).await.for_read()?.ok_or_else(unknown_document)?;
    cx.reserve((document.counts.l2 + document.counts.l3) * NODE_BYTES).await?;
    let detail = kb.detail_in(&scope, document.doc_id).await.for_read()?.ok_or_else(unknown_document)?;
    // If the file store is unavailable, the file counts as unavailable.
    let available = matches!(kb.original(&detail.document).await, Ok(Some(_)));
    let page_images = available && has_page_images(&cx, &detail.document)?;
    ApiResponse::ok(&DocumentDetail::new(detail, available, page_images))
}

/// Whether the pages of a document's original can be shown as images.
fn has_page_images(cx: &RequestContext, document: &Document) -> Result<bool, ApiError> {
    let is_pdf = |original: &Original| Format::from_file_name(&original.file_name) == Some(Format::Pdf);
    let page_reader = cx.services()?.files.tools().page_reader();
    Ok(page_reader.is_some() && document.original.as_ref().is_some_and(is_pdf))
}

async fn chunks(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, from) = (query.limit()?, query.offset('c')?);
    query.finish()?;
    let scope = cx.rights(reader.0.as_ref()).await?.readable();
    let kb = &cx.services()?.kb;
    let page = kb.chunks_in(&scope, cx.doc_id()?, from.unwrap_or(0), limit).await.for_read()?;
    let page = page.ok_or_else(unknown_document)?;
    ApiResponse::ok(&ChunkList {
        items: page.items.into_iter().map(ChunkItem::from).collect(),
        next_offset: page.next.map(|next| cursor('c', next)),
    })
}

/// This read needs the blob store. While that is unavailable the error is retryable, as for writes.
async fn text(reader: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let doc_id = cx.doc_id()?;
    let scope = cx.rights_to_write(reader.0.as_ref()).await?.readable();
    let kb = &cx.services()?.kb;
    let document = kb.document_in(&scope, doc_id).await.for_write()?.ok_or_else(unknown_document)?;
    let scope = Scope::of(document.space);
    let text = kb.text_stream(&scope, doc_id).await.for_write()?.ok_or_else(unknown_document)?;
    let head =
        serde_json::to_string(&json!({ "doc_id": doc_id })).map_err(|error| ApiError::internal(&error))?;
    let id = cx.request_id();
    let text = while_permitted(cx, (StreamSubject::Spaces(scope), Recheck::Interval), text, permission_lost);
    Ok(stream_envelope(&id, &head, "text", text))
}

async fn change(owner: Owner, mut cx: RequestContext) -> HandlerResult {
    let input: DocumentChangeInput = cx.json(CHANGE_BYTES).await?;
    let (OwnedDocument { doc_id, space, .. }, caller) = (owner.document()?.clone(), &owner.caller);
    let kb = &cx.services()?.kb;
    let changed = input.changed_names();
    let change = input.check(kb.taxonomy())?;
    let detail = Map::from_iter([("changed".to_owned(), json!(changed))]);
    let entry = AuditLog::entry(caller.actor(), AuditAction::DocumentChange, &doc_id.to_string(), detail)?;
    let mut alongside = vec![entry];
    let target = change.space.clone().filter(|target| *target != space);
    if let Some(target) = &target {
        check_move(&cx, caller, &space, target).await?;
        alongside.extend(Spaces::admit(target));
    }
    let written = kb.change_with(doc_id, change, alongside).await;
    let document = unless_closed(cx.services()?, caller, target, written).await?;
    ApiResponse::ok(&L1Item::from(document.ok_or_else(unknown_document)?))
}

/// Refuses a move unless the caller may change documents of others in both spaces, or is a writer in both.
async fn check_move(
    cx: &RequestContext,
    caller: &Caller,
    from: &SpaceName,
    to: &SpaceName,
) -> Result<(), ApiError> {
    let rights = cx.rights_to_write(Some(caller)).await?;
    rights.check_writable(to)?;
    if rights.may_manage(to) || !rights.may_manage(from) {
        return Ok(());
    }
    // A manager of the first space alone moves own documents only.
    let doc_id = cx.doc_id()?;
    let home = cx.services()?.kb.home(&Scope::of(from.clone()), doc_id).await.for_write()?;
    match home {
        Some((_, creator)) if creator.is(&caller.account.id) => Ok(()),
        Some(_) => Err(ApiError::forbidden(format!("this needs a manager of the space {to}"))),
        None => Err(unknown_document()),
    }
}

async fn delete(owner: Owner, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    // Deleting an unknown document is no error.
    let Some(OwnedDocument { doc_id, .. }) = owner.document else {
        return ApiResponse::ok(&DeletedDocument::nothing(cx.path_part("doc_id")));
    };
    let entry =
        AuditLog::entry(owner.caller.actor(), AuditAction::DocumentDelete, &doc_id.to_string(), Map::new())?;
    let counts = cx.services()?.kb.delete_with(doc_id, vec![entry]).await.for_write()?;
    ApiResponse::ok(&DeletedDocument::new(doc_id, counts))
}

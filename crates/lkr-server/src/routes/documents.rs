//! Listing, reading, changing and deleting documents.

use actix_web::http::Method;
use lkr::ListFilter;
use lkr_auth::{AuditAction, AuditLog};
use serde_json::{Map, json};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Endpoint, HandlerResult, Owner, Reader, Recheck, RequestContext, cursor,
        permission_lost, stream_envelope, unknown_document, while_permitted,
    },
    openapi::{OperationDoc, ResponseShape, schema},
    wire::{
        document_change::DocumentChangeInput,
        documents::{
            ChunkItem, ChunkList, DeletedDocument, DocumentDetail, DocumentList, DocumentText, L1Item,
        },
        filter_expr::FilterExprJson,
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
                .query_text(
                    "where",
                    "Only documents that match this expression, JSON of at most 16 KiB as in the search.",
                )
                .paged(),
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
                "Changes title, source, category and metadata of a document without ingesting it again",
                schema::<L1Item>(),
            )
            .body::<DocumentChangeInput>()
            .errors(&[ErrorCode::NotFound]),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/{doc_id}",
            doc(
                "delete_document",
                "Deletes a document and everything derived from it. For an unknown document all counts are 0",
                schema::<DeletedDocument>(),
            ),
            delete,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/chunks",
            doc("list_chunks", "Lists the chunks of a document in order", schema::<ChunkList>())
                .paged()
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

async fn list(_: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('d')?);
    let filter = ListFilter {
        category: query.text("category"),
        source: query.text("source"),
        title_prefix: query.text("q"),
        filter_expr: query.text("where").map(|text| FilterExprJson::from_query(&text)).transpose()?,
    };
    query.finish()?;
    let page = cx.services()?.kb.list(&filter, after, limit as usize).await.for_read()?;
    ApiResponse::ok(&DocumentList::new(page.items, page.next.map(|id| cursor('d', id))))
}

async fn get(_: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let kb = &cx.services()?.kb;
    let document = kb.document(cx.doc_id()?).await.for_read()?.ok_or_else(unknown_document)?;
    cx.reserve((document.counts.l2 + document.counts.l3) * NODE_BYTES).await?;
    let detail = kb.detail(document.doc_id).await.for_read()?.ok_or_else(unknown_document)?;
    // If the file store is unavailable, the file counts as unavailable.
    let available = matches!(kb.original(&detail.document).await, Ok(Some(_)));
    ApiResponse::ok(&DocumentDetail::new(detail, available))
}

async fn chunks(_: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, from) = (query.limit()?, query.offset('c')?);
    query.finish()?;
    let page = cx.services()?.kb.chunks(cx.doc_id()?, from.unwrap_or(0), limit).await.for_read()?;
    let page = page.ok_or_else(unknown_document)?;
    ApiResponse::ok(&ChunkList {
        items: page.items.into_iter().map(ChunkItem::from).collect(),
        next_offset: page.next.map(|next| cursor('c', next)),
    })
}

/// This read needs the blob store. While that is unavailable the error is retryable, as for writes.
async fn text(_: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let doc_id = cx.doc_id()?;
    let text = cx.services()?.kb.text_stream(doc_id).await.for_write()?;
    let text = text.ok_or_else(unknown_document)?;
    let head =
        serde_json::to_string(&json!({ "doc_id": doc_id })).map_err(|error| ApiError::internal(&error))?;
    let id = cx.request_id();
    let text = while_permitted(cx, Recheck::Interval, text, permission_lost);
    Ok(stream_envelope(&id, &head, "text", text))
}

async fn change(Owner(caller): Owner, mut cx: RequestContext) -> HandlerResult {
    let input: DocumentChangeInput = cx.json(CHANGE_BYTES).await?;
    let doc_id = cx.doc_id()?;
    let kb = &cx.services()?.kb;
    let changed = input.changed_names();
    let change = input.check(kb.taxonomy())?;
    let detail = Map::from_iter([("changed".to_owned(), json!(changed))]);
    let entry = AuditLog::entry(caller.actor(), AuditAction::DocumentChange, &doc_id.to_string(), detail)?;
    let document = kb.change_with(doc_id, change, vec![entry]).await.for_write()?;
    ApiResponse::ok(&L1Item::from(document.ok_or_else(unknown_document)?))
}

async fn delete(Owner(caller): Owner, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    // Deleting an unknown document is no error. A malformed id is the id of no document.
    let Ok(doc_id) = cx.doc_id() else {
        return ApiResponse::ok(&DeletedDocument::nothing(cx.path_part("doc_id")));
    };
    let entry =
        AuditLog::entry(caller.actor(), AuditAction::DocumentDelete, &doc_id.to_string(), Map::new())?;
    let counts = cx.services()?.kb.delete_with(doc_id, vec![entry]).await.for_write()?;
    ApiResponse::ok(&DeletedDocument::new(doc_id, counts))
}

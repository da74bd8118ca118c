use actix_web::http::Method;
use lkr::ListFilter;
use lkr_auth::{AuditAction, AuditLog};
use serde_json::{Map, json};

use crate::{
    error::{ApiError, Code, Failing},
    http::{Answer, Cx, Endpoint, Owner, Reader, Reply, cursor, enveloped, unknown_document},
    openapi::{Doc, Shape, schema},
    wire::{
        document_change::DocumentChangeInput,
        documents::{
            ChunkItem, ChunkList, DeletedDocument, DocumentDetail, DocumentList, DocumentText, L1Item,
        },
    },
};

/// The largest body of a change: properties at their most, every byte written as an escape of six.
const CHANGE_BYTES: usize = 2 * 1024 * 1024;

/// What a node takes in memory while an answer is made of it and sent, all in all.
const NODE_BYTES: u64 = 2 * 1024;

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Documents", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents",
            doc("list_documents", "Lists documents, the newest first", schema::<DocumentList>())
                .text("category", "Only documents of this category; empty for those without one.")
                .text("source", "Only documents of this source.")
                .text("q", "Only documents whose title begins so.")
                .paged(),
            list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}",
            doc("get_document", "A document with its nodes", schema::<DocumentDetail>())
                .errors(&[Code::NotFound]),
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
            .errors(&[Code::NotFound]),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/{doc_id}",
            doc(
                "delete_document",
                "Deletes a document with all that was made of it; zeros for an unknown one",
                schema::<DeletedDocument>(),
            ),
            delete,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/chunks",
            doc("list_chunks", "The chunks of a document, in order", schema::<ChunkList>())
                .paged()
                .errors(&[Code::NotFound]),
            chunks,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/{doc_id}/text",
            doc("get_text", "The extracted text of a document", schema::<DocumentText>())
                .errors(&[Code::NotFound]),
            text,
        ),
    ]
}

async fn list(_: Reader, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('d')?);
    let filter = ListFilter {
        category: query.text("category"),
        source: query.text("source"),
        title_prefix: query.text("q"),
    };
    query.finish()?;
    let page = cx.services()?.kb.list(&filter, after, limit as usize).await.reading()?;
    Reply::ok(&DocumentList::new(page.items, page.next.map(|id| cursor('d', id))))
}

async fn get(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let kb = &cx.services()?.kb;
    let document = kb.document(cx.doc_id()?).await.reading()?.ok_or_else(unknown_document)?;
    cx.reserve((document.counts.l2 + document.counts.l3) * NODE_BYTES).await?;
    let detail = kb.detail(document.doc_id).await.reading()?.ok_or_else(unknown_document)?;
    // A store that is away has no file for anybody.
    let available = matches!(kb.original(&detail.document).await, Ok(Some(_)));
    Reply::ok(&DocumentDetail::new(detail, available))
}

async fn chunks(_: Reader, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, from) = (query.limit()?, query.offset('c')?);
    query.finish()?;
    let page = cx.services()?.kb.chunks(cx.doc_id()?, from.unwrap_or(0), limit).await.reading()?;
    let page = page.ok_or_else(unknown_document)?;
    Reply::ok(&ChunkList {
        items: page.items.into_iter().map(ChunkItem::from).collect(),
        next_offset: page.next.map(|next| cursor('c', next)),
    })
}

/// The one read that needs the blob store: while that is away, another try may succeed.
async fn text(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let doc_id = cx.doc_id()?;
    let text = cx.services()?.kb.text_in_parts(doc_id).await.writing()?;
    let text = text.ok_or_else(unknown_document)?;
    let head =
        serde_json::to_string(&json!({ "doc_id": doc_id })).map_err(|error| ApiError::internal(&error))?;
    Ok(enveloped(&cx.request_id(), &head, "text", text))
}

async fn change(Owner(caller): Owner, mut cx: Cx) -> Answer {
    let input: DocumentChangeInput = cx.json(CHANGE_BYTES).await?;
    let doc_id = cx.doc_id()?;
    let kb = &cx.services()?.kb;
    let names = input.names();
    let change = input.check(kb.taxonomy())?;
    let detail = Map::from_iter([("changed".to_owned(), json!(names))]);
    let entry = AuditLog::entry(caller.by(), AuditAction::DocumentChange, &doc_id.to_string(), detail)?;
    let document = kb.change_and(doc_id, change, vec![entry]).await.writing()?;
    Reply::ok(&L1Item::from(document.ok_or_else(unknown_document)?))
}

async fn delete(Owner(caller): Owner, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    // Deleting what is not there is no error, and what cannot be an id is the id of no document.
    let Ok(doc_id) = cx.doc_id() else {
        return Reply::ok(&DeletedDocument::nothing(cx.part("doc_id")));
    };
    let entry = AuditLog::entry(caller.by(), AuditAction::DocumentDelete, &doc_id.to_string(), Map::new())?;
    let counts = cx.services()?.kb.delete_and(doc_id, vec![entry]).await.writing()?;
    Reply::ok(&DeletedDocument::new(doc_id, counts))
}

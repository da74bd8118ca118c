//! The files of a vector store, which are the documents of a space.

use actix_web::http::Method;
use lkr::{DocId, Scope};

use super::{
    doc::{doc, paged},
    page::requested_page,
};
use crate::{
    error::{ErrorCode, KbResultExt},
    http::{
        ApiResponse, Endpoint, HandlerResult, Recheck, RequestContext, SpaceReader, StreamSubject,
        permission_lost, stream_json, unknown_document, while_permitted,
    },
    openapi::{CursorOf, schema},
    wire::openai::vector_stores::{FileContent, VectorStoreFileItem, VectorStoreFileList},
};

const FILE: &str = "/api/v1/openai/vector_stores/{space}/files/{doc_id}";

/// The values of the parameter `filter`.
const STATUSES: [&str; 4] = ["in_progress", "completed", "failed", "cancelled"];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/openai/vector_stores/{space}/files",
            paged(
                doc(
                    "openai_list_files",
                    "Lists the documents of a space, by the time at which they were accepted",
                    schema::<VectorStoreFileList>(),
                ),
                CursorOf::Id,
            )
            .query_choice(
                "filter",
                "A status. Documents that can be searched, which alone are listed, are completed.",
                STATUSES,
            ),
            list,
        ),
        Endpoint::new(
            Method::GET,
            FILE,
            doc("openai_get_file", "Returns a document of a space", schema::<VectorStoreFileItem>())
                .errors(&[ErrorCode::NotFound]),
            get,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/openai/vector_stores/{space}/files/{doc_id}/content",
            doc(
                "openai_get_file_content",
                "Returns the extracted text of a document",
                schema::<FileContent>(),
            )
            .errors(&[ErrorCode::NotFound]),
            content,
        ),
    ]
}

async fn list(reader: SpaceReader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let page = requested_page(&mut query, |text| text.parse::<DocId>().ok())?;
    let status = query
        .parsed("filter", &STATUSES.join(", "), |text| STATUSES.into_iter().find(|known| *known == text))?;
    query.finish()?;
    if status.is_some_and(|status| status != "completed") {
        return ApiResponse::bare(&VectorStoreFileList::new(Vec::new(), false));
    }
    let (order, start) = page.reading();
    let (kb, space) = (&cx.services()?.kb, reader.admitted.space.name);
    let found = kb.list_space(&space, order, start.copied(), page.limit).await.for_read()?;
    let items = found.items.iter().map(VectorStoreFileItem::new).collect();
    ApiResponse::bare(&VectorStoreFileList::new(page.arrange(items), found.next.is_some()))
}

async fn get(reader: SpaceReader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let scope = Scope::of(reader.admitted.space.name);
    let document = cx.services()?.kb.document_in(&scope, cx.doc_id()?).await.for_read()?;
    ApiResponse::bare(&VectorStoreFileItem::new(&document.ok_or_else(unknown_document)?))
}

/// This read needs the blob store. While that is unavailable the error is retryable, as for writes.
async fn content(reader: SpaceReader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let (scope, doc_id) = (Scope::of(reader.admitted.space.name), cx.doc_id()?);
    let text = cx.services()?.kb.text_stream(&scope, doc_id).await.for_write()?;
    let text = text.ok_or_else(unknown_document)?;
    let text = while_permitted(cx, (StreamSubject::Spaces(scope), Recheck::Interval), text, permission_lost);
    let begin = r#"{"object":"vector_store.file_content.page","data":[{"type":"text","text":""#;
    let end = r#""}],"has_more":false,"next_page":null}"#;
    Ok(stream_json(begin.to_owned(), text, end.to_owned()))
}

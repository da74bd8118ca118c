use lkr::ListFilter;

use crate::{
    error::{ApiError, Code, Failing},
    http::{Answer, Cx, Member, Reader, Reply, cursor, unknown_document},
    wire::{
        document_input::{DocumentInput, MAX_TEXT_BYTES},
        documents::{ChunkItem, ChunkList, DeletedDocument, DocumentDetail, DocumentList, DocumentText},
        tasks::Accepted,
    },
};

/// The largest body: every byte of the text may be written as an escape of six, and the rest needs some room.
const BODY_BYTES: usize = 6 * MAX_TEXT_BYTES + 2 * 1024 * 1024;

pub(super) async fn add(Member(caller): Member, mut cx: Cx) -> Answer {
    let input: DocumentInput = cx.json(BODY_BYTES).await?;
    let (document, warnings) = input.check()?;
    let task = cx.services()?.kb.submit(document, &caller.account.username, warnings).await.writing()?;
    Reply::accepted(&Accepted { task_id: task.task_id, status: task.status.name() })
}

pub(super) async fn list(_: Reader, cx: Cx) -> Answer {
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

pub(super) async fn get(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let detail = cx.services()?.kb.detail(cx.doc_id()?).await.reading()?;
    Reply::ok(&DocumentDetail::from(detail.ok_or_else(unknown_document)?))
}

pub(super) async fn chunks(_: Reader, cx: Cx) -> Answer {
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
pub(super) async fn text(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let doc_id = cx.doc_id()?;
    let text = cx.services()?.kb.text(doc_id).await.writing()?;
    Reply::ok(&DocumentText { doc_id, text: text.ok_or_else(unknown_document)? })
}

pub(super) async fn delete(Member(caller): Member, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    // Deleting what is not there is no error, and what cannot be an id is the id of no document.
    let Ok(doc_id) = cx.doc_id() else {
        return Reply::ok(&DeletedDocument::nothing(cx.part("doc_id")));
    };
    let kb = &cx.services()?.kb;
    let owner = kb.owner(doc_id).await.writing()?;
    if !caller.is_admin() && owner.is_some_and(|owner| owner != caller.account.username) {
        return Err(ApiError::new(Code::Forbidden, "the document is another account's"));
    }
    let counts = kb.delete(doc_id).await.writing()?;
    Reply::ok(&DeletedDocument::new(doc_id, counts))
}

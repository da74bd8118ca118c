//! Listing and reading vector stores.

use actix_web::http::Method;
use lkr::{ListOrder, SpaceName};
use lkr_spaces::Space;

use super::{
    doc::{doc, paged},
    page::requested_page,
};
use crate::{
    error::{ApiError, KbResultExt},
    http::{ApiResponse, Endpoint, HandlerResult, Reader, RequestContext, SpaceReader},
    openapi::{CursorOf, schema},
    wire::openai::{
        page::{PageRequest, PageStart},
        vector_stores::{VectorStoreItem, VectorStoreList},
    },
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/openai/vector_stores",
            paged(
                doc(
                    "openai_list_vector_stores",
                    "Lists the spaces that the caller may read as vector stores, by the time of their creation",
                    schema::<VectorStoreList>(),
                ),
                CursorOf::Name,
            ),
            list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/openai/vector_stores/{space}",
            doc("openai_get_vector_store", "Returns a space as a vector store", schema::<VectorStoreItem>()),
            get,
        ),
    ]
}

async fn list(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let page = requested_page(&mut query, SpaceName::new)?;
    query.finish()?;
    let (services, caller) = (cx.services()?, reader.spaces_caller());
    let directory = services.directory().await?;
    let readable = directory.spaces().filter(|space| directory.may_read(&caller, &space.name));
    let rest = after_start(readable.collect(), &page)?;
    let has_more = rest.len() > page.limit;
    let shown: Vec<&Space> = rest.into_iter().take(page.limit).collect();
    let counts = services.kb.counts_of_spaces(shown.iter().map(|space| &space.name)).await.for_read()?;
    let items = shown.into_iter().cloned().zip(counts);
    let items = items.map(|(space, counts)| VectorStoreItem::new(space, counts)).collect();
    ApiResponse::bare(&VectorStoreList::new(page.arrange(items), has_more))
}

/// The spaces that remain to be read, in the order of reading.
fn after_start<'s>(
    mut spaces: Vec<&'s Space>,
    page: &PageRequest<SpaceName>,
) -> Result<Vec<&'s Space>, ApiError> {
    let (order, start) = page.reading();
    spaces.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
    if order == ListOrder::NewestFirst {
        spaces.reverse();
    }
    let Some(name) = start else { return Ok(spaces) };
    let parameter = if matches!(page.start, PageStart::Before(_)) { "before" } else { "after" };
    let position = spaces.iter().position(|space| space.name == *name);
    let position = position.ok_or_else(|| {
        ApiError::invalid_parameter(parameter, format!("no vector store has the id {:?}", name.as_str()))
    })?;
    Ok(spaces.split_off(position + 1))
}

async fn get(reader: SpaceReader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let space = reader.admitted.space;
    let counts = cx.services()?.kb.space_counts(&space.name).await.for_read()?;
    ApiResponse::bare(&VectorStoreItem::new(space, counts))
}

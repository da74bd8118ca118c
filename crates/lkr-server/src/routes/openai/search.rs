//! Searching a vector store.

use std::collections::HashSet;

use actix_web::http::Method;
use lkr::{Scope, SearchRequest};

use super::doc::doc;
use crate::{
    error::ApiError,
    http::{ApiResponse, Endpoint, HandlerResult, RequestContext, SpaceReader},
    openapi::schema,
    routes::search::BODY_BYTES,
    scored_search::{ScoredResult, scored_searches},
    wire::openai::search::{VectorSearch, VectorSearchInput, VectorSearchPage},
};

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        Method::POST,
        "/api/v1/openai/vector_stores/{space}/search",
        doc("openai_search_vector_store", "Searches the documents of a space", schema::<VectorSearchPage>())
            .body::<VectorSearchInput>(),
        search,
    )]
}

async fn search(reader: SpaceReader, mut cx: RequestContext) -> HandlerResult {
    let search = cx.json::<VectorSearchInput>(BODY_BYTES).await?.check()?;
    let named = [reader.admitted.space.name];
    let scope = cx.rights(reader.caller.as_ref()).await?.scope(Some(&named))?;
    let results = search_all(&cx, &search, &scope).await?;
    ApiResponse::bare(&VectorSearchPage::new(search.queries, &results))
}

/// The results of all queries, best first, each chunk once.
async fn search_all(
    cx: &RequestContext,
    search: &VectorSearch,
    scope: &Scope,
) -> Result<Vec<ScoredResult>, ApiError> {
    let request = |query: &String| {
        let (query, scope) = (query.clone(), scope.clone());
        SearchRequest { query, scope, ..search.request.clone() }
    };
    let requests: Vec<SearchRequest> = search.queries.iter().map(request).collect();
    let mut all = scored_searches(cx, &requests, search.threshold).await?;
    // The sort is stable, so the order of the results of one query is kept.
    all.sort_by(|a, b| b.score.total_cmp(&a.score));
    let mut seen = HashSet::new();
    all.retain(|scored| seen.insert(scored.result.chunk_id));
    all.truncate(search.request.top_k);
    Ok(all)
}

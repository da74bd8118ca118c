//! Searches for clients of other protocols: each result with its document and a score from 0 to 1.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use lkr::{DocId, Document, Scope, SearchRequest, SearchResult, retrieval::relative_scores};

use crate::{
    error::{ApiError, KbResultExt},
    http::RequestContext,
};

/// How often searches are made if documents change between them and the read of their results' documents. Chosen so that a
/// document that is changed again and again is found at last, and that no request takes much longer for it; not measured.
const MAX_ATTEMPTS: usize = 6;

/// A result with its document, and its score from 0 to 1.
#[derive(Debug, Clone)]
pub(crate) struct ScoredResult {
    pub(crate) result: SearchResult,
    pub(crate) document: Document,
    pub(crate) score: f32,
}

/// Searches, and drops results below a score. So are results whose document was deleted or moved meanwhile.
pub(crate) async fn scored_search(
    cx: &RequestContext,
    request: SearchRequest,
    threshold: f32,
) -> Result<Vec<ScoredResult>, ApiError> {
    scored_searches(cx, &[request], threshold).await
}

/// The results of searches of one scope, search by search, without those below a score. All results of a document are parts of
/// one revision, which is that of the document beside them: if a document changes meanwhile, everything is repeated, and after
/// the last attempt its results are dropped. So are results whose document was deleted or moved meanwhile.
pub(crate) async fn scored_searches(
    cx: &RequestContext,
    requests: &[SearchRequest],
    threshold: f32,
) -> Result<Vec<ScoredResult>, ApiError> {
    let Some(scope) = requests.first().map(|request| &request.scope) else { return Ok(Vec::new()) };
    let mut attempts = MAX_ATTEMPTS;
    loop {
        let mut found = Vec::new();
        for request in requests {
            found.extend(scored(cx, request, threshold).await?);
        }
        let documents = documents_of(cx, scope, &found).await?;
        let with_document = |(result, score): (SearchResult, f32)| {
            let document = documents.get(&result.doc_id)?.clone();
            Some(ScoredResult { result, document, score })
        };
        let mut results: Vec<ScoredResult> = found.into_iter().filter_map(with_document).collect();
        attempts -= 1;
        if results.iter().all(ScoredResult::is_consistent) {
            return Ok(results);
        }
        if attempts == 0 {
            results.retain(ScoredResult::is_consistent);
            return Ok(results);
        }
    }
}

/// The results of a search with their scores, without those below a score.
async fn scored(
    cx: &RequestContext,
    request: &SearchRequest,
    threshold: f32,
) -> Result<Vec<(SearchResult, f32)>, ApiError> {
    let request = SearchRequest { explain: true, ..request.clone() };
    let (kb, started) = (&cx.services()?.kb, Instant::now());
    let found = kb.search(&request).await.for_read()?;
    cx.state().record_search(&cx.request_id(), &request.query, started.elapsed(), found.profile.as_ref());
    let scores = found.response.explain.as_ref().map(|explain| relative_scores(&explain.results));
    let good = found.response.results.iter().zip(scores.unwrap_or_default());
    Ok(good.filter(|(_, score)| *score >= threshold).map(|(result, score)| (result.clone(), score)).collect())
}

/// The documents of results that are still in the scope.
async fn documents_of(
    cx: &RequestContext,
    scope: &Scope,
    found: &[(SearchResult, f32)],
) -> Result<BTreeMap<DocId, Document>, ApiError> {
    let ids: BTreeSet<DocId> = found.iter().map(|(result, _)| result.doc_id).collect();
    let ids: Vec<DocId> = ids.into_iter().collect();
    let documents = cx.services()?.kb.documents_among(scope, &ids).await.for_read()?;
    Ok(documents.into_iter().map(|document| (document.doc_id, document)).collect())
}

impl ScoredResult {
    /// Whether the document is as the search saw it.
    fn is_consistent(&self) -> bool {
        let Self { result, document, .. } = self;
        (result.revision, result.updated_at) == (document.revision, document.updated_at)
    }
}

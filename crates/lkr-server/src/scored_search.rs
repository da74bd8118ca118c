//! Searches for clients of other protocols: each result with its document and a score from 0 to 1.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use lkr::{DocId, Document, SearchRequest, SearchResult, retrieval::relative_scores};

use crate::{
    error::{ApiError, KbResultExt},
    http::RequestContext,
};

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
    let request = SearchRequest { explain: true, ..request };
    let (kb, started) = (&cx.services()?.kb, Instant::now());
    let found = kb.search(&request).await.for_read()?;
    cx.state().record_search(&cx.request_id(), &request.query, started.elapsed(), found.profile.as_ref());
    let scores = found.response.explain.as_ref().map(|explain| relative_scores(&explain.results));
    let scores = scores.unwrap_or_default();
    let good = found.response.results.iter().zip(scores).filter(|(_, score)| *score >= threshold);
    let good: Vec<(&SearchResult, f32)> = good.collect();
    let ids: BTreeSet<DocId> = good.iter().map(|(result, _)| result.doc_id).collect();
    let ids: Vec<DocId> = ids.into_iter().collect();
    let documents = kb.documents_among(&request.scope, &ids).await.for_read()?;
    let documents: BTreeMap<DocId, Document> =
        documents.into_iter().map(|document| (document.doc_id, document)).collect();
    let with_document = |(result, score): (&SearchResult, f32)| {
        let document = documents.get(&result.doc_id)?.clone();
        Some(ScoredResult { result: result.clone(), document, score })
    };
    Ok(good.into_iter().filter_map(with_document).collect())
}

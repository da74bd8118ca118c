//! From what was found to the response.

use lkr_catalog::node_of;
use lkr_domain::{Chunk, Document, Layer};
use lkr_text::{Language, Literals, QueryTerm, highlights};
use lkr_vectors::Point;

use crate::{
    Explain, ExplainedResult, LayerHit, Layers, LegKind, LegReport, Result, SearchRequest, SearchResponse,
    SearchResult,
    find::{Found, Shown},
    live::Documents,
    look::Reranked,
    rank::{Candidate, Lead, Ranked},
};

/// What is marked in results.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Words.
    pub(crate) words: std::sync::Arc<[QueryTerm]>,
    /// What is asked for as it stands.
    pub(crate) literals: std::sync::Arc<Literals>,
}

/// Makes the response, all but its time and its summary. Work for a blocking thread: it analyses every result's text.
pub(crate) fn assemble(
    request: SearchRequest,
    found: &mut Found,
    asked: &Asked,
    warnings: Vec<String>,
) -> Result<SearchResponse> {
    let layers = layers(found)?;
    let explain = request.explain.then(|| explain(found));
    let results = results(found, asked);
    Ok(SearchResponse { query: request.query, results, layers, summary: None, warnings, took_ms: 0, explain })
}

fn results(found: &mut Found, asked: &Asked) -> Vec<SearchResult> {
    let Found { ranked, shown, documents, .. } = found;
    let result = |candidate: &Candidate| {
        let chunk = shown.chunks.remove(&candidate.id)?;
        Some(result(candidate, chunk, documents.get(&candidate.origin.doc_id)?, asked))
    };
    ranked.candidates.iter().filter_map(result).collect()
}

fn result(candidate: &Candidate, chunk: Chunk, document: &Document, asked: &Asked) -> SearchResult {
    let language = Language::from_code(&document.language);
    SearchResult {
        chunk_id: candidate.id,
        doc_id: document.doc_id,
        title: document.title.clone(),
        source: document.source.clone(),
        category: document.category.clone(),
        path: chunk.path,
        page_start: chunk.pages.map(|pages| pages.start),
        page_end: chunk.pages.map(|pages| pages.end),
        char_start: chunk.span.start,
        char_end: chunk.span.end,
        highlights: highlights(&asked.words, &asked.literals, &chunk.text, language),
        text: chunk.text,
        score: candidate.score,
        scores: candidate.scores,
    }
}

fn layers(found: &mut Found) -> Result<Layers> {
    let Found { ranked, shown: Shown { l2, l3, .. }, documents, .. } = found;
    Ok(Layers {
        l1: ranked.led_from(Layer::L1).into_iter().filter_map(|lead| root(lead, documents)).collect(),
        l2: nodes(ranked, Layer::L2, l2)?,
        l3: nodes(ranked, Layer::L3, l3)?,
    })
}

/// An L1 hit as its record tells it: the record may have changed since its point was written.
fn root(lead: Lead, documents: &Documents) -> Option<LayerHit> {
    let document = documents.get(&lead.doc_id)?;
    Some(LayerHit {
        id: lead.id,
        doc_id: lead.doc_id,
        title: document.title.clone(),
        summary: document.summary.clone(),
        score: lead.score,
    })
}

fn nodes(ranked: &Ranked, layer: Layer, points: &mut Vec<Option<Point>>) -> Result<Vec<LayerHit>> {
    let pairs = ranked.led_from(layer).into_iter().zip(points.drain(..));
    pairs.filter_map(|(lead, point)| Some((lead, point?))).map(|(lead, point)| node(lead, point)).collect()
}

fn node(lead: Lead, point: Point) -> Result<LayerHit> {
    let node = node_of(point.payload)?;
    Ok(LayerHit {
        id: lead.id,
        doc_id: lead.doc_id,
        title: node.title,
        summary: node.summary,
        score: lead.score,
    })
}

fn explain(found: &Found) -> Explain {
    let ms = found.legs.took.as_secs_f64() * 1_000.0;
    let weight = |layer, kind: LegKind| {
        found
            .ranked
            .layers
            .iter()
            .find(|ranked| ranked.layer == layer)
            .map_or(0.0, |ranked| ranked.weight(kind))
    };
    let legs = found.legs.all.iter().map(|leg| LegReport {
        layer: leg.layer,
        kind: leg.kind,
        weight: weight(leg.layer, leg.kind),
        candidates: leg.hits.len(),
        ms: if leg.asked { ms } else { 0.0 },
    });
    let ranked = found.ranked.candidates.iter().zip(found.ranked.by_leg());
    let results = ranked.map(|(candidate, (ranks, scores))| ExplainedResult {
        chunk_id: candidate.id,
        ranks,
        scores,
        fused: candidate.fused,
        heading: candidate.heading,
        exact: candidate.exact,
        reranked: candidate.reranked,
    });
    let rerank = match &found.reranked {
        Reranked::Done(report) => Some(report.clone()),
        Reranked::Not | Reranked::Failed | Reranked::TooSlow => None,
    };
    Explain { legs: legs.collect(), rerank, results: results.collect() }
}

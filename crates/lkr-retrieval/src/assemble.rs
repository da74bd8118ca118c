//! Assembling the response from what was retrieved.

use std::sync::Arc;

use lkr_catalog::node_of;
use lkr_domain::{Chunk, Document, Layer};
use lkr_text::{Highlighter, Language, Literals, QueryTerm};
use lkr_vectors::Point;

use crate::{
    Explain, ExplainedResult, LayerHit, Layers, LegKind, LegReport, Result, SearchRequest, SearchResponse,
    SearchResult,
    candidate::Candidate,
    live::Documents,
    rank::{ParentNode, Ranked},
    rerank::RerankOutcome,
    retrieve::{PageContents, Retrieved},
};

/// What highlights mark in results.
#[derive(Debug)]
pub(crate) struct QueryMarks {
    /// The terms of the query.
    pub(crate) terms: Arc<[QueryTerm]>,
    /// The literals of the query.
    pub(crate) literals: Arc<Literals>,
}

/// Assembles the response, except for its time and its summary. Runs on a blocking thread, because it analyses the text
/// of every result.
pub(crate) fn assemble(
    request: &SearchRequest,
    retrieved: &mut Retrieved,
    marks: &QueryMarks,
    warnings: Vec<String>,
) -> Result<SearchResponse> {
    let layers = layers(retrieved)?;
    let explain = request.explain.then(|| explain(retrieved));
    let results = results(retrieved, marks);
    let query = request.query.clone();
    Ok(SearchResponse { query, results, layers, summary: None, warnings, took_ms: 0, explain })
}

fn results(retrieved: &mut Retrieved, marks: &QueryMarks) -> Vec<SearchResult> {
    let Retrieved { ranked, contents, documents, .. } = retrieved;
    let mut highlighter = Highlighter::new(&marks.terms, &marks.literals);
    let result = |candidate: &Candidate| {
        let chunk = contents.chunks.remove(&candidate.id)?;
        Some(result(candidate, chunk, documents.get(&candidate.origin.doc_id)?, &mut highlighter))
    };
    ranked.candidates.iter().filter_map(result).collect()
}

fn result(
    candidate: &Candidate,
    chunk: Chunk,
    document: &Document,
    highlighter: &mut Highlighter<'_>,
) -> SearchResult {
    let language = Language::from_code(&document.language);
    SearchResult {
        chunk_id: candidate.id,
        doc_id: document.doc_id,
        revision: document.revision,
        updated_at: document.updated_at,
        title: document.title.clone(),
        source: document.source.clone(),
        space: document.space.clone(),
        category: document.category.clone(),
        path: chunk.path,
        page_start: chunk.pages.map(|pages| pages.start),
        page_end: chunk.pages.map(|pages| pages.end),
        char_start: chunk.span.start,
        char_end: chunk.span.end,
        highlights: highlighter.highlights(&chunk.text, language),
        text: chunk.text,
        score: candidate.score,
        scores: candidate.scores,
    }
}

fn layers(retrieved: &mut Retrieved) -> Result<Layers> {
    let Retrieved { ranked, contents: PageContents { l2, l3, .. }, documents, .. } = retrieved;
    Ok(Layers {
        l1: ranked.parents(Layer::L1).into_iter().filter_map(|parent| l1_hit(parent, documents)).collect(),
        l2: node_hits(ranked, Layer::L2, l2)?,
        l3: node_hits(ranked, Layer::L3, l3)?,
    })
}

/// An L1 hit with the contents of its record, which may be newer than its point.
fn l1_hit(parent: ParentNode, documents: &Documents) -> Option<LayerHit> {
    let document = documents.get(&parent.doc_id)?;
    Some(LayerHit {
        id: parent.id,
        doc_id: parent.doc_id,
        title: document.title.clone(),
        summary: document.summary.clone(),
        score: parent.score,
    })
}

fn node_hits(ranked: &Ranked, layer: Layer, points: &mut Vec<Option<Point>>) -> Result<Vec<LayerHit>> {
    let pairs = ranked.parents(layer).into_iter().zip(points.drain(..));
    let present = pairs.filter_map(|(parent, point)| Some((parent, point?)));
    present.map(|(parent, point)| node_hit(parent, point)).collect()
}

fn node_hit(parent: ParentNode, point: Point) -> Result<LayerHit> {
    let node = node_of(point.payload)?;
    Ok(LayerHit {
        id: parent.id,
        doc_id: parent.doc_id,
        title: node.title,
        summary: node.summary,
        score: parent.score,
    })
}

fn explain(retrieved: &Retrieved) -> Explain {
    let ms = retrieved.legs.took.as_secs_f64() * 1_000.0;
    let layers = &retrieved.ranked.layers;
    let weight = |layer, kind: LegKind| {
        let ranked = layers.iter().find(|ranked| ranked.layer == layer);
        ranked.map_or(0.0, |ranked| ranked.weight(kind))
    };
    let legs = retrieved.legs.all.iter().map(|leg| LegReport {
        layer: leg.layer,
        kind: leg.kind,
        weight: weight(leg.layer, leg.kind),
        candidates: leg.hits.len(),
        ms: if leg.queried { ms } else { 0.0 },
    });
    let ranked = retrieved.ranked.candidates.iter().zip(retrieved.ranked.by_leg());
    let results = ranked.map(|(candidate, (ranks, scores))| ExplainedResult {
        chunk_id: candidate.id,
        ranks,
        scores,
        fused: candidate.fused,
        heading: candidate.heading,
        exact: candidate.exact,
        reranked: candidate.reranked,
    });
    let rerank = match &retrieved.rerank {
        RerankOutcome::Done(report) => Some(report.clone()),
        RerankOutcome::Off | RerankOutcome::Failed | RerankOutcome::TimedOut => None,
    };
    Explain { legs: legs.collect(), rerank, results: results.collect() }
}

//! Refining the order of the best candidates by their text: headings, literal matches and a reranker.

use std::sync::Arc;

use lkr_catalog::{DocumentTitle, chunk_of};
use lkr_domain::{Chunk, DocId, Layer, PointId};
use lkr_layers::indexed_chunk;
use lkr_text::{LiteralMatches, Literals, QueryTerm};
use lkr_vectors::{Hit, VectorStore};

use crate::{
    Result,
    blocking::blocking,
    candidate::{self, Candidate},
    headings::{self, HeadingShares},
    ids::IdMap,
    live::Titles,
    points,
    rerank::{RerankOutcome, Reranking, rerank},
};

/// How many candidates are searched for literals. See docs/studies.md#literal-matches.
const LITERAL_DEPTH: usize = 20;
/// How many of the chunks' best sparse hits are read early for their headings. Most of them are among the best of all legs.
const EARLY_DEPTH: usize = 15;
/// The most candidates that may contain an identifier, or the whole query, for it to count; above that, a fifth of
/// them. A literal that more candidates contain does not tell them apart. See docs/studies.md#literal-matches.
const MAX_LITERAL_HITS: usize = 5;

/// The evidence that refines an order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refinement {
    /// The literals of the query.
    pub(crate) literals: Arc<Literals>,
    /// The terms that are compared with headings; `None` if headings do not count.
    pub(crate) terms: Option<Arc<[QueryTerm]>>,
    /// The reranker.
    pub(crate) reranking: Reranking,
}

/// What was read of the candidates.
#[derive(Debug)]
pub(crate) struct Examined {
    /// The chunks of the candidates, without those that are gone.
    pub(crate) chunks: IdMap<PointId, Chunk>,
    /// The share of the upper layers' evidence that counts.
    pub(crate) parent_share: f64,
    /// Whether the query has quoted phrases, and no candidate contains all of them.
    pub(crate) lacks_quoted: bool,
}

impl Refinement {
    /// How many of the best candidates it reads, besides those of the page.
    pub(crate) fn depth(&self) -> usize {
        let literal = self.literal_depth();
        let headings = if self.terms.is_some() { headings::DEPTH } else { 0 };
        literal.max(headings).max(self.reranking.profile().map_or(0, |profile| profile.candidates))
    }

    /// The hits of the chunks' sparse leg that are searched for the query's literals even if fusion ranks them low.
    pub(crate) fn literal_hits<'a>(&self, hits: &'a [Hit]) -> &'a [Hit] {
        hits.get(..self.literal_depth()).unwrap_or(hits)
    }

    /// Those that are worth reading before the other legs have ended: those that are searched for literals, and those whose
    /// headings probably count.
    pub(crate) fn early_hits<'a>(&self, hits: &'a [Hit]) -> &'a [Hit] {
        let headed = if self.terms.is_some() { EARLY_DEPTH } else { 0 };
        hits.get(..self.literal_depth().max(headed)).unwrap_or(hits)
    }

    fn literal_depth(&self) -> usize {
        if self.literals.is_empty() { 0 } else { LITERAL_DEPTH }
    }

    /// Reads the chunks of `candidates` that are not `examined` yet, drops candidates that are gone, and sorts the rest by
    /// headings and literal matches.
    pub(crate) async fn examine(
        &self,
        vectors: &dyn VectorStore,
        candidates: &mut Vec<Candidate>,
        titles: &Titles,
        mut examined: IdMap<PointId, ExaminedChunk>,
    ) -> Result<Examined> {
        examined.retain(|id, _| candidates.iter().any(|candidate| candidate.id == *id));
        let rest = candidates.iter().filter(|candidate| !examined.contains_key(&candidate.id));
        let rest: Vec<_> = rest.map(|candidate| (candidate.id, candidate.origin.doc_id)).collect();
        examined.extend(self.read_and_examine(vectors, &rest, titles).await?);
        candidates.retain(|candidate| examined.contains_key(&candidate.id));
        let parent_share = match self.terms {
            Some(_) => headings::apply(candidates, |id| examined.get(&id)?.heading),
            None => 1.0,
        };
        let contains_quoted = mark_exact(candidates, &examined);
        candidate::sort(candidates);
        let chunks = examined.into_iter().map(|(id, examined)| (id, examined.chunk)).collect();
        let lacks_quoted = self.literals.has_quoted() && !contains_quoted;
        Ok(Examined { chunks, parent_share, lacks_quoted })
    }

    /// Reranks the best candidates, and sorts all into their final order.
    pub(crate) async fn rerank(
        &self,
        query: &str,
        candidates: &mut [Candidate],
        examined: &Examined,
        titles: &Titles,
    ) -> RerankOutcome {
        let outcome = match &self.reranking {
            Reranking::Off => RerankOutcome::Off,
            Reranking::Unavailable => RerankOutcome::Failed,
            Reranking::Model(reranker, time_limit) => {
                let count = candidates.len().min(reranker.profile().candidates);
                let (best, _) = candidates.split_at_mut(count);
                let passages = best.iter().map(|best| passage(best, examined, titles)).collect();
                rerank(&**reranker, *time_limit, query, best, passages).await
            }
        };
        candidate::sort(candidates);
        outcome
    }

    /// Reads and examines chunks, without those that are gone. It decodes them on a blocking thread because it analyses all of
    /// their text.
    pub(crate) async fn read_and_examine(
        &self,
        vectors: &dyn VectorStore,
        chunks: &[(PointId, DocId)],
        titles: &Titles,
    ) -> Result<IdMap<PointId, ExaminedChunk>> {
        let points = points::read(vectors, Layer::Chunks, chunks.iter().map(|(id, _)| *id).collect()).await?;
        let inputs = chunks.iter().zip(points).filter_map(|((id, doc_id), point)| {
            let DocumentTitle { title, language } = titles.get(doc_id)?.clone();
            Some((*id, title, language, point?))
        });
        let inputs: Vec<_> = inputs.collect();
        let (literals, terms) = (Arc::clone(&self.literals), self.terms.clone());
        let examine_all = move || {
            let mut headings = terms.as_deref().map(HeadingShares::new);
            let each = inputs.into_iter().map(|(id, title, language, point)| {
                let chunk = chunk_of(point.payload)?;
                let heading = headings.as_mut().and_then(|headings| headings.share(&chunk.path, &language));
                let literals = literal_matches(&literals, &title, &chunk);
                Ok((id, ExaminedChunk { literals, heading, chunk }))
            });
            each.collect::<Result<_>>()
        };
        blocking(examine_all).await?
    }
}

/// A chunk and the evidence in its text.
#[derive(Debug)]
pub(crate) struct ExaminedChunk {
    chunk: Chunk,
    literals: LiteralMatches,
    /// The share of the query in its heading; `None` if headings do not count or it has none.
    heading: Option<f64>,
}

fn literal_matches(literals: &Literals, title: &str, chunk: &Chunk) -> LiteralMatches {
    if literals.is_empty() {
        return LiteralMatches::default();
    }
    let path = chunk.path.iter().map(String::as_str);
    let texts: Vec<&str> = [title, chunk.text.as_str()].into_iter().chain(path).collect();
    literals.matches_in(&texts)
}

/// Marks the candidates that contain the query's quoted phrases. If none does, marks those that contain the whole query
/// or its identifiers, unless too many do. Returns whether one contains the quoted phrases.
fn mark_exact(candidates: &mut [Candidate], examined: &IdMap<PointId, ExaminedChunk>) -> bool {
    let count = |contains: fn(&LiteralMatches) -> bool| {
        examined.values().filter(|chunk| contains(&chunk.literals)).count()
    };
    let is_selective = |count: usize| count <= MAX_LITERAL_HITS.max(examined.len() / 5);
    let quoted = count(|matches| matches.quoted) > 0;
    let whole_query = is_selective(count(|matches| matches.whole_query));
    let identifiers = is_selective(count(|matches| matches.identifiers));
    for candidate in candidates {
        let Some(ExaminedChunk { literals, .. }) = examined.get(&candidate.id) else { continue };
        let unquoted = (whole_query && literals.whole_query) || (identifiers && literals.identifiers);
        candidate.exact = if quoted { literals.quoted } else { unquoted };
    }
    quoted
}

/// The text of a candidate for the reranker: title, headings and text.
fn passage(candidate: &Candidate, examined: &Examined, titles: &Titles) -> String {
    let title = titles.get(&candidate.origin.doc_id).map_or("", |document| document.title.as_str());
    let chunk = examined.chunks.get(&candidate.id);
    chunk.map(|chunk| indexed_chunk(&title.into(), chunk)).unwrap_or_default()
}

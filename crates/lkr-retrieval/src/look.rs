//! A closer look at the best candidates: what they say, whether it is what was asked for as it stands, and what the
//! reranker thinks of it.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_catalog::chunk_of;
use lkr_domain::{Chunk, Layer, PointId};
use lkr_layers::indexed_text;
use lkr_models::{Reranker, RerankerProfile};
use lkr_text::{LiteralMatches, Literals, QueryTerm};
use lkr_vectors::{Point, VectorStore};
use tokio::{task::spawn_blocking, time::timeout};

use crate::{RerankReport, Result, find::get, headings, live::Documents, order::order, rank::Candidate};

/// How many candidates are searched for what was asked for as it stands.
pub(crate) const LITERAL_DEPTH: usize = 20;
/// An identifier, or the whole query, that more candidates hold than this and than a fifth of them tells nothing.
const TELLING: usize = 5;

/// What a closer look is for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Look {
    /// What is asked for as it stands.
    pub(crate) literals: Arc<Literals>,
    /// The words that headings are compared with; `None` where headings do not count.
    pub(crate) words: Option<Arc<[QueryTerm]>>,
    /// What the candidates are shown to.
    pub(crate) reranking: Reranking,
}

/// Who ranks again.
#[derive(Debug, Clone, Default)]
pub(crate) enum Reranking {
    /// Nobody.
    #[default]
    No,
    /// One who cannot be had.
    Failed,
    /// This one, who is waited for so long.
    Actor(Arc<dyn Reranker>, Duration),
}

/// What a closer look showed.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The chunks of the candidates; those that went meanwhile are not there.
    pub(crate) chunks: HashMap<PointId, Chunk>,
    /// The share of the evidence of the layers above that counts.
    pub(crate) counts_above: f64,
    /// What the reranker did.
    pub(crate) reranked: Reranked,
}

/// What the reranker did.
#[derive(Debug, Default)]
pub(crate) enum Reranked {
    /// There is none, or none is wanted.
    #[default]
    Not,
    /// It failed: the order is as it was.
    Failed,
    /// It was waited for in vain: the order is as it was.
    TooSlow,
    /// It scored candidates.
    Done(RerankReport),
}

impl Look {
    /// How many of the best candidates it is for, those of the page apart.
    pub(crate) fn depth(&self) -> usize {
        let literal = if self.literals.is_empty() { 0 } else { LITERAL_DEPTH };
        let headings = if self.words.is_some() { headings::DEPTH } else { 0 };
        literal.max(headings).max(self.reranking.profile().map_or(0, |profile| profile.candidates))
    }

    /// Reads `candidates`, says of each what there is to say of it, and puts them in their final order.
    pub(crate) async fn at(
        &self,
        vectors: &dyn VectorStore,
        query: &str,
        candidates: &mut Vec<Candidate>,
        documents: &Documents,
    ) -> Result<Seen> {
        let ids: Vec<PointId> = candidates.iter().map(|candidate| candidate.id).collect();
        let points = get(vectors, Layer::Chunks, ids).await?;
        let read = self.read(candidates, points, documents).await?;
        candidates.retain(|candidate| read.contains_key(&candidate.id));
        let counts_above = match self.words {
            Some(_) => headings::weigh(candidates, |id| read.get(&id)?.named),
            None => 1.0,
        };
        mark_literal(candidates, &read);
        order(candidates);
        let reranked = match &self.reranking {
            Reranking::No => Reranked::Not,
            Reranking::Failed => Reranked::Failed,
            Reranking::Actor(reranker, patience) => {
                let most = candidates.len().min(reranker.profile().candidates);
                let (shown, _) = candidates.split_at_mut(most);
                let passages = shown.iter().map(|candidate| passage(candidate, &read, documents)).collect();
                rerank(&**reranker, *patience, query, shown, passages).await
            }
        };
        order(candidates);
        let chunks = read.into_iter().map(|(id, read)| (id, read.chunk)).collect();
        Ok(Seen { chunks, counts_above, reranked })
    }

    /// Reads chunks, on a blocking thread: it goes through all of their text.
    async fn read(
        &self,
        candidates: &[Candidate],
        points: Vec<Option<Point>>,
        documents: &Documents,
    ) -> Result<HashMap<PointId, Read>> {
        let given = candidates.iter().zip(points).filter_map(|(candidate, point)| {
            let document = documents.get(&candidate.origin.doc_id)?;
            Some((candidate.id, document.title.clone(), document.language.clone(), point?))
        });
        let given: Vec<_> = given.collect();
        let (literals, words) = (Arc::clone(&self.literals), self.words.clone());
        let read = move || {
            let each = given.into_iter().map(|(id, title, language, point)| {
                let chunk = chunk_of(point.payload)?;
                let named = words.as_ref().and_then(|words| headings::named(words, &chunk.path, &language));
                Ok((id, Read { held: held(&literals, &title, &chunk), named, chunk }))
            });
            each.collect::<Result<_>>()
        };
        spawn_blocking(read).await?
    }
}

/// A chunk, and what it holds of what was asked for as it stands.
#[derive(Debug)]
struct Read {
    chunk: Chunk,
    held: LiteralMatches,
    /// What its heading says, where headings count and it has one.
    named: Option<f64>,
}

fn held(literals: &Literals, title: &str, chunk: &Chunk) -> LiteralMatches {
    if literals.is_empty() {
        return LiteralMatches::default();
    }
    let path = chunk.path.iter().map(String::as_str);
    let texts: Vec<&str> = [title, chunk.text.as_str()].into_iter().chain(path).collect();
    literals.held_by(&texts)
}

/// Marks the candidates that hold what was asked for as it stands: the phrases in quotation marks; else the whole query
/// or its identifiers, as far as these tell the candidates apart.
fn mark_literal(candidates: &mut [Candidate], read: &HashMap<PointId, Read>) {
    let count = |holds: fn(&LiteralMatches) -> bool| read.values().filter(|read| holds(&read.held)).count();
    let tells = |count: usize| count <= TELLING.max(read.len() / 5);
    let quoted = count(|held| held.quoted) > 0;
    let (whole, identifiers) = (tells(count(|held| held.whole)), tells(count(|held| held.identifiers)));
    for candidate in candidates {
        let Some(Read { held, .. }) = read.get(&candidate.id) else { continue };
        let by_the_way = (whole && held.whole) || (identifiers && held.identifiers);
        candidate.exact = if quoted { held.quoted } else { by_the_way };
    }
}

impl Reranking {
    /// The profile of who ranks again.
    pub(crate) fn profile(&self) -> Option<&RerankerProfile> {
        match self {
            Self::Actor(reranker, _) => Some(reranker.profile()),
            Self::No | Self::Failed => None,
        }
    }
}

/// Has `shown` scored, of which `passages` are the texts.
async fn rerank(
    reranker: &dyn Reranker,
    patience: Duration,
    query: &str,
    shown: &mut [Candidate],
    passages: Vec<String>,
) -> Reranked {
    let (model, candidates) = (reranker.profile().name.clone(), passages.len());
    let started = Instant::now();
    let reason = match timeout(patience, reranker.rerank(query, &passages)).await {
        Ok(Ok(scores)) if fits(&scores, candidates) => {
            shown.iter_mut().zip(scores).for_each(|(candidate, score)| candidate.reranked = Some(score));
            let ms = started.elapsed().as_secs_f64() * 1_000.0;
            return Reranked::Done(RerankReport { model, candidates, ms });
        }
        Ok(Ok(scores)) => format!("{} scores came of {candidates} passages, or no numbers", scores.len()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => {
            tracing::warn!(reranker = model, "the reranker did not answer in time");
            return Reranked::TooSlow;
        }
    };
    tracing::warn!(reranker = model, reason, "the results could not be reranked");
    Reranked::Failed
}

fn fits(scores: &[f32], passages: usize) -> bool {
    scores.len() == passages && scores.iter().all(|score| score.is_finite())
}

/// What the reranker is shown of a candidate: its text with title and headings, as it is indexed.
fn passage(candidate: &Candidate, read: &HashMap<PointId, Read>, documents: &Documents) -> String {
    let title = documents.get(&candidate.origin.doc_id).map_or("", |document| document.title.as_str());
    let chunk = read.get(&candidate.id).map(|read| &read.chunk);
    chunk.map(|chunk| indexed_text(title, &chunk.path, &chunk.text)).unwrap_or_default()
}

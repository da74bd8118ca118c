//! Evaluating searches with a gold set.

use async_trait::async_trait;
use lkr_catalog::{Progress, SearchQuality, Task};
use lkr_domain::{CharSpan, Creator};
use lkr_eval::{FoundChunk, GoldQuery, GoldSet, Measures};
use lkr_ingest::{Evaluator, SearchQualities};
use lkr_retrieval::{GroupBy, Mode, SearchRequest, Searcher};
use tokio::runtime::Handle;

use crate::{Error, ErrorKind, KnowledgeBase, Result, error::During};

/// The number of results for a query that judges documents.
const DOCUMENTS: usize = 10;

/// The number of results for a query that judges passages: enough that they cover ten judged passages.
const CHUNKS: usize = 100;

/// The most bytes of a gold set as JSON. It is stored as one record, and the store has no larger ones.
pub const MAX_GOLD_BYTES: usize = 1024 * 1024;

fn too_many_bytes(bytes: usize) -> String {
    format!("the gold set has {bytes} bytes of JSON, at most {MAX_GOLD_BYTES} are allowed")
}

impl KnowledgeBase {
    /// Accepts a task that runs the queries of a gold set, flat and layered, and measures the results.
    ///
    /// # Errors
    /// `Invalid` with the first violation in the gold set, or if it has more than [`MAX_GOLD_BYTES`].
    pub async fn evaluate(&self, gold: &GoldSet, created_by: &Creator) -> Result<Task> {
        if let Some(violation) = gold.violation() {
            return Err(Error::new(ErrorKind::Invalid, "evaluate", violation));
        }
        let gold =
            serde_json::to_vec(gold).map_err(|error| Error::new(ErrorKind::Internal, "evaluate", error))?;
        if gold.len() > MAX_GOLD_BYTES {
            let reason = too_many_bytes(gold.len());
            return Err(Error::new(ErrorKind::Invalid, "evaluate", reason));
        }
        self.shared.ingestor.evaluate(gold, created_by).await.during("evaluate")
    }
}

/// Runs gold queries through a searcher.
#[derive(Debug)]
pub(crate) struct SearchEvaluator {
    pub(crate) searcher: Searcher,
    /// Where it searches. Threads that a search starts have the priority of the thread that it runs on, and later searches use
    /// them: not one that gives way.
    pub(crate) runtime: Handle,
}

#[async_trait]
impl Evaluator for SearchEvaluator {
    async fn evaluate(
        &self,
        gold: &[u8],
        report: &(dyn Fn(Progress) + Send + Sync),
    ) -> lkr_ingest::Result<SearchQualities> {
        let gold: GoldSet = serde_json::from_slice(gold).map_err(|error| internal(error.into()))?;
        let total = gold.queries.len() as u64;
        let (mut flat, mut layered) = (Vec::new(), Vec::new());
        for (query, done) in gold.queries.iter().zip(0..) {
            report(Progress { done, total });
            flat.push(self.measure(query, Mode::Flat).await?);
            layered.push(self.measure(query, Mode::Layered).await?);
        }
        Ok(SearchQualities { flat: mean_quality(&flat), layered: mean_quality(&layered) })
    }
}

impl SearchEvaluator {
    async fn measure(&self, query: &GoldQuery, mode: Mode) -> lkr_ingest::Result<Measures> {
        let (group_by, top_k) = match query.judges_documents() {
            true => (GroupBy::Document, DOCUMENTS),
            false => (GroupBy::Chunk, CHUNKS),
        };
        let request = SearchRequest { mode, group_by, top_k, ..SearchRequest::new(query.text.as_str()) };
        let searcher = self.searcher.clone();
        let search = self.runtime.spawn(async move { searcher.search(&request).await });
        let outcome = search.await.map_err(|error| internal(error.into()))?.map_err(search_error)?;
        let chunks = outcome.response.results.iter().map(|result| FoundChunk {
            doc_id: result.doc_id,
            span: CharSpan { start: result.char_start, end: result.char_end },
        });
        Ok(query.measures(&chunks.collect::<Vec<_>>()))
    }
}

fn mean_quality(all: &[Measures]) -> SearchQuality {
    let Measures { ndcg_at_10, mrr_at_10, recall_at_10, .. } = Measures::mean(all);
    SearchQuality { queries: all.len() as u64, ndcg_at_10, recall_at_10, mrr_at_10 }
}

fn search_error(error: lkr_retrieval::Error) -> lkr_ingest::Error {
    let kind = match error.kind() {
        lkr_retrieval::ErrorKind::Unavailable => lkr_ingest::ErrorKind::StoreUnavailable,
        lkr_retrieval::ErrorKind::Overloaded => lkr_ingest::ErrorKind::Overloaded,
        _ => return internal(error.into()),
    };
    lkr_ingest::Error::new(kind, "evaluate", error)
}

fn internal(source: Box<dyn std::error::Error + Send + Sync>) -> lkr_ingest::Error {
    lkr_ingest::Error::new(lkr_ingest::ErrorKind::Internal, "evaluate", source)
}

//! The report of an evaluation of a server.

use std::fmt;

use lkr_eval::Measures;
use serde::Serialize;

use crate::{add::Report, eval::citations::CitationReport, stats::Latency};

/// The report of an evaluation of a server.
#[derive(Debug, Serialize)]
pub(crate) struct ServerReport {
    collection: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ingested: Option<Report>,
    queries: usize,
    /// The means over the queries.
    #[serde(flatten)]
    measures: Measures,
    latency: Latency,
    citations: CitationReport,
    by_query: Vec<QueryMeasures>,
}

/// The measures of a query.
#[derive(Debug, Serialize)]
pub(super) struct QueryMeasures {
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) measures: Measures,
}

impl ServerReport {
    pub(super) fn new(
        collection: &str,
        ingested: Option<Report>,
        judged: Vec<QueryMeasures>,
        latency: Latency,
        citations: CitationReport,
    ) -> Self {
        let measures: Vec<Measures> = judged.iter().map(|judged| judged.measures).collect();
        let measures = Measures::mean(&measures);
        let (collection, queries) = (collection.to_owned(), judged.len());
        Self { collection, ingested, queries, measures, latency, citations, by_query: judged }
    }

    /// Whether all documents were ingested and all citations match.
    pub(super) fn is_success(&self) -> bool {
        self.citations.mismatches == 0 && self.ingested.as_ref().is_none_or(|report| report.failed.is_empty())
    }
}

impl fmt::Display for ServerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "collection {}", self.collection)?;
        if let Some(ingested) = &self.ingested {
            write!(f, "{ingested}")?;
        }
        let Measures { ndcg_at_10, mrr_at_10, recall_at_10, recall_at_100 } = self.measures;
        writeln!(f, "queries    {}, documents judged", self.queries)?;
        writeln!(f, "nDCG@10    {ndcg_at_10:.4}")?;
        writeln!(f, "MRR@10     {mrr_at_10:.4}")?;
        writeln!(f, "recall@10  {recall_at_10:.4}")?;
        writeln!(f, "recall@100 {recall_at_100:.4}")?;
        let Latency { mean_ms, p50_ms, p99_ms } = self.latency;
        writeln!(f, "latency    {mean_ms:.1} ms mean, {p50_ms:.1} p50, {p99_ms:.1} p99")?;
        let CitationReport { checked, mismatches, examples } = &self.citations;
        writeln!(f, "citations  {checked} checked, {mismatches} do not hold")?;
        examples.iter().try_for_each(|example| writeln!(f, "mismatch   {example}"))
    }
}

//! The report of an evaluation in this process.

use std::fmt;

use lkr_eval::{Comparison, Measures};
use serde::Serialize;

use crate::{
    eval::{citations::CitationReport, judge::Target},
    stats::Latency,
};

/// The figures of a collection.
#[derive(Debug, Serialize)]
pub(super) struct LocalReport {
    pub(super) collection: String,
    /// The number of documents in the knowledge base.
    pub(super) documents: u64,
    pub(super) chunks: u64,
    pub(super) second_round: bool,
    pub(super) results: Vec<MeasuresRow>,
    pub(super) significance: Vec<Significance>,
    pub(super) recall_by_layer: Vec<LayerRecall>,
    pub(super) latency: Vec<SystemLatency>,
    pub(super) citations: CitationReport,
}

/// The measures of a system: the means over the queries with judgements of the target.
#[derive(Debug, Serialize)]
pub(super) struct MeasuresRow {
    pub(super) target: Target,
    pub(super) system: &'static str,
    pub(super) queries: usize,
    #[serde(flatten)]
    pub(super) measures: Measures,
}

/// The comparison of two systems by nDCG@10 of each query.
#[derive(Debug, Serialize)]
pub(super) struct Significance {
    pub(super) target: Target,
    pub(super) system: &'static str,
    pub(super) against: &'static str,
    #[serde(flatten)]
    pub(super) comparison: Comparison,
}

/// The recall of a layer: the share of relevant items that its legs rank, among the results of the layered search; and
/// the quality of the ranking of each leg alone.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LayerRecall {
    pub(super) target: Target,
    pub(super) layer: &'static str,
    pub(super) recall_at_10: f64,
    pub(super) recall_at_100: f64,
    pub(super) sparse_ndcg_at_10: f64,
    pub(super) dense_ndcg_at_10: f64,
}

/// The latency of a system's searches for chunks.
#[derive(Debug, Serialize)]
pub(super) struct SystemLatency {
    pub(super) system: &'static str,
    #[serde(flatten)]
    pub(super) latency: Latency,
}

impl fmt::Display for LocalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, documents, chunks, second_round, .. } = self;
        let second_round = if *second_round { "with" } else { "without" };
        writeln!(f, "{collection}: {documents} documents, {chunks} chunks; {second_round} a second round")?;
        Target::ALL.into_iter().try_for_each(|target| self.write_target(f, target))?;
        writeln!(f, "\nlatency, ms          mean    p50    p99")?;
        for SystemLatency { system, latency } in &self.latency {
            let Latency { mean_ms, p50_ms, p99_ms } = latency;
            writeln!(f, "  {system:<16} {mean_ms:>7.1}{p50_ms:>7.1}{p99_ms:>7.1}")?;
        }
        let CitationReport { checked, mismatches, examples } = &self.citations;
        writeln!(f, "\ncitations  {checked} checked, {mismatches} do not hold")?;
        examples.iter().try_for_each(|example| writeln!(f, "mismatch   {example}"))
    }
}

impl LocalReport {
    fn write_target(&self, f: &mut fmt::Formatter<'_>, target: Target) -> fmt::Result {
        let rows: Vec<&MeasuresRow> = self.results.iter().filter(|row| row.target == target).collect();
        let Some(first) = rows.first() else { return Ok(()) };
        let title = format!("{}, {} queries", target.name(), first.queries);
        writeln!(f, "\n{title:<24} nDCG@10  MRR@10  recall@10  recall@100")?;
        for MeasuresRow { system, measures, .. } in rows {
            let Measures { ndcg_at_10, mrr_at_10, recall_at_10, recall_at_100 } = measures;
            writeln!(
                f,
                "  {system:<22} {ndcg_at_10:>7.4} {mrr_at_10:>7.4} {recall_at_10:>10.4} {recall_at_100:>11.4}"
            )?;
        }
        for Significance { system, against, comparison, .. } in
            of_target(&self.significance, target, |s| s.target)
        {
            let Comparison { difference, standard_error, p, better, worse, .. } = comparison;
            writeln!(
                f,
                "  {system} − {against}: {difference:+.4} (s.e. {standard_error:.4}), p = {p:.5}, \
                 {better} better, {worse} worse"
            )?;
        }
        for listed in of_target(&self.recall_by_layer, target, |l| l.target) {
            let LayerRecall { layer, recall_at_10, recall_at_100, .. } = listed;
            let LayerRecall { sparse_ndcg_at_10: sparse, dense_ndcg_at_10: dense, .. } = listed;
            writeln!(
                f,
                "  listed by {layer:<12} recall@10 {recall_at_10:.4}, recall@100 {recall_at_100:.4}; \
                 nDCG@10 of its sparse leg {sparse:.4}, of its dense one {dense:.4}"
            )?;
        }
        Ok(())
    }
}

fn of_target<T>(all: &[T], target: Target, target_of: impl Fn(&T) -> Target) -> impl Iterator<Item = &T> {
    all.iter().filter(move |each| target_of(each) == target)
}

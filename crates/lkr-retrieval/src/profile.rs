//! Where the time of a search goes: its stages with their durations, and its legs with their candidates.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use lkr_domain::Layer;
use tracing::{Instrument, Span, debug_span};

use crate::LegKind;

/// A stage of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchStage {
    /// Waiting until fewer searches run.
    Admission,
    /// Making the query's dense vector. The terms of the query are found meanwhile, and sparse legs may begin.
    Encode,
    /// One batch of legs: their queries to the store, but for those that were answered before the dense vector was made.
    Legs,
    /// Dropping stale hits, and fusing the others.
    Fuse,
    /// Reading the best candidates and the page.
    Read,
    /// Scoring the best candidates with the reranker.
    Rerank,
    /// Assembling the response; of a context, reading and cutting its passages.
    Assemble,
    /// Summarizing the results.
    Summarize,
}

/// A stage that a search went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StageTime {
    /// The stage.
    pub stage: SearchStage,
    /// How long it took.
    pub took: Duration,
}

/// The candidates of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegCandidates {
    /// The layer that it searched.
    pub layer: Layer,
    /// Whether it searched dense or sparse vectors.
    pub kind: LegKind,
    /// How many live candidates it listed.
    pub candidates: usize,
}

/// Where the time of a search went.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchProfile {
    /// The stages in the order in which they ended. A stage that was repeated is listed each time.
    pub stages: Vec<StageTime>,
    /// The legs that were queried, in their last round.
    pub legs: Vec<LegCandidates>,
}

impl SearchStage {
    /// Every stage.
    pub const ALL: [Self; 8] = [
        Self::Admission,
        Self::Encode,
        Self::Legs,
        Self::Fuse,
        Self::Read,
        Self::Rerank,
        Self::Assemble,
        Self::Summarize,
    ];

    /// The name in metrics, logs and traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Admission => "admission",
            Self::Encode => "encode",
            Self::Legs => "legs",
            Self::Fuse => "fuse",
            Self::Read => "read",
            Self::Rerank => "rerank",
            Self::Assemble => "assemble",
            Self::Summarize => "summarize",
        }
    }

    /// A span with the name of the stage. The names of spans are constants.
    fn span(self) -> Span {
        match self {
            Self::Admission => debug_span!("admission"),
            Self::Encode => debug_span!("encode"),
            Self::Legs => debug_span!("legs"),
            Self::Fuse => debug_span!("fuse"),
            Self::Read => debug_span!("read"),
            Self::Rerank => debug_span!("rerank"),
            Self::Assemble => debug_span!("assemble"),
            Self::Summarize => debug_span!("summarize"),
        }
    }
}

impl SearchProfile {
    /// Runs one more stage of the search.
    pub(crate) async fn measure<T>(&mut self, stage: SearchStage, work: impl Future<Output = T>) -> T {
        let times = StageTimes::default();
        let done = times.measure(stage, work).await;
        self.stages.extend(times.stages());
        done
    }
}

/// The stages of a running search. Each runs in a span of its own.
#[derive(Debug, Default)]
pub(crate) struct StageTimes(Mutex<Vec<StageTime>>);

impl StageTimes {
    /// Runs a stage and notes its duration.
    pub(crate) async fn measure<T>(&self, stage: SearchStage, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.instrument(stage.span()).await;
        let time = StageTime { stage, took: started.elapsed() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(time);
        done
    }

    /// The stages so far.
    pub(crate) fn stages(&self) -> Vec<StageTime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stages_are_listed_in_the_order_in_which_they_ended() {
        let times = StageTimes::default();
        times.measure(SearchStage::Read, times.measure(SearchStage::Legs, tokio::task::yield_now())).await;
        times.measure(SearchStage::Legs, async {}).await;
        let stages: Vec<_> = times.stages().iter().map(|time| time.stage.name()).collect();
        assert_eq!(stages, ["legs", "read", "legs"]);
    }
}

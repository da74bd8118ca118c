//! The log of slow searches: where the time of a search went. It never contains the text of the query.

use std::{fmt::Write as _, time::Duration};

use lkr::SearchProfile;

/// A search whose results are complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FinishedSearch<'a> {
    pub(crate) request_id: &'a str,
    /// The length of the query, in code points.
    pub(crate) query_chars: usize,
    pub(crate) took: Duration,
    pub(crate) profile: &'a SearchProfile,
}

impl FinishedSearch<'_> {
    /// Logs the search if it took longer than `threshold`, and returns whether it did. Lines of one place in the code are
    /// limited ([`LogLimiter`](crate::log_limiter::LogLimiter)), so that slow searches do not fill the log.
    pub(crate) fn log_if_slower(&self, threshold: Option<Duration>) -> bool {
        let Self { request_id, query_chars, took, profile } = *self;
        let is_slow = threshold.is_some_and(|threshold| took > threshold);
        if is_slow {
            let (took_ms, stages, legs) = (took.as_millis(), stages(profile), legs(profile));
            tracing::warn!(request_id, took_ms, query_chars, stages, legs, "slow search");
        }
        is_slow
    }
}

/// The stages with their durations, in the order in which they ended.
fn stages(profile: &SearchProfile) -> String {
    listed(profile.stages.iter().map(|time| (time.stage.name(), time.took)), |text, (name, took)| {
        write!(text, "{name} {:.1} ms", took.as_secs_f64() * 1e3)
    })
}

/// The legs with the numbers of their candidates.
fn legs(profile: &SearchProfile) -> String {
    listed(&profile.legs, |text, leg| {
        write!(text, "{} {} {}", leg.layer.name(), leg.kind.name(), leg.candidates)
    })
}

fn listed<T>(
    items: impl IntoIterator<Item = T>,
    write_item: impl Fn(&mut String, T) -> std::fmt::Result,
) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text.push_str(", ");
        }
        // Writing to a string cannot fail.
        let _ = write_item(&mut text, item);
    }
    text
}

#[cfg(test)]
mod tests {
    use lkr::{
        Layer, SearchStage,
        retrieval::{LegCandidates, LegKind, StageTime},
    };

    use super::*;

    #[test]
    fn stages_and_legs_are_listed_with_their_numbers() {
        let stage = |stage, ms| StageTime { stage, took: Duration::from_millis(ms) };
        let profile = SearchProfile {
            stages: vec![stage(SearchStage::Encode, 3), stage(SearchStage::Legs, 1_200)],
            legs: vec![
                LegCandidates { layer: Layer::L1, kind: LegKind::Dense, candidates: 7 },
                LegCandidates { layer: Layer::Chunks, kind: LegKind::Sparse, candidates: 100 },
            ],
        };
        assert_eq!(stages(&profile), "encode 3.0 ms, legs 1200.0 ms");
        assert_eq!(
            legs(&profile),
            format!("{} dense 7, {} sparse 100", Layer::L1.name(), Layer::Chunks.name())
        );
        let finished = |ms| FinishedSearch {
            request_id: "r",
            query_chars: 5,
            took: Duration::from_millis(ms),
            profile: &profile,
        };
        assert!(finished(11).log_if_slower(Some(Duration::from_millis(10))));
        assert!(!finished(10).log_if_slower(Some(Duration::from_millis(10))));
        assert!(!finished(10_000).log_if_slower(None));
    }
}

//! The results of a step.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

use crate::bench::load::kind::Kind;

/// The shortest time that is told from others, in nanoseconds.
const SHORTEST_NANOS: u64 = 100;

/// The longest time, in nanoseconds. Longer ones count as this.
const LONGEST_NANOS: u64 = 3_600_000_000_000;

/// Times are kept to a thousandth of themselves.
const DIGITS: u8 = 3;

/// A request that was answered with success.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered {
    /// Whether the search cache answered.
    pub(super) is_hit: bool,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    /// The public code of the failure, or what happened to the connection.
    pub(super) code: String,
    /// Why it failed.
    pub(super) message: String,
}

/// The failures with one code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Failures {
    pub(super) count: u64,
    /// Why the first of them failed; empty if that is not known.
    pub(super) message: String,
}

impl Failures {
    fn add(&mut self, count: u64, message: &str) {
        if self.message.is_empty() {
            message.clone_into(&mut self.message);
        }
        self.count += count;
    }
}

/// The results of all kinds of requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) kinds: BTreeMap<Kind, Results>,
    /// The requests that were due and never sent.
    pub(super) unsent: u64,
}

/// The results of one kind of request, or of several.
#[derive(Debug, Clone)]
pub(super) struct Results {
    /// The latencies of the requests that were answered with success, in nanoseconds. Refusals are quick and would embellish them.
    latencies: Histogram<u64>,
    /// The requests that the search cache answered.
    pub(super) hits: u64,
    /// The failures by their codes.
    pub(super) errors: BTreeMap<String, Failures>,
}

impl Tally {
    /// Counts a request.
    pub(super) fn record(
        &mut self,
        kind: Kind,
        latency: Duration,
        outcome: Result<Answered, Failure>,
    ) -> Result<()> {
        let results = match self.kinds.entry(kind) {
            Entry::Vacant(entry) => entry.insert(Results::new()?),
            Entry::Occupied(entry) => entry.into_mut(),
        };
        match outcome {
            Ok(Answered { is_hit }) => {
                let nanos = u64::try_from(latency.as_nanos()).unwrap_or(LONGEST_NANOS);
                results.latencies.saturating_record(nanos);
                results.hits += u64::from(is_hit);
            }
            Err(Failure { code, message }) => results.errors.entry(code).or_default().add(1, &message),
        }
        Ok(())
    }

    /// The results of all kinds together; those that were not sent are errors.
    pub(super) fn total(&self) -> Result<Results> {
        let mut total = Results::new()?;
        for (kind, results) in &self.kinds {
            total.latencies.add(&results.latencies).context("add up latencies")?;
            total.hits += results.hits;
            for (code, Failures { count, message }) in &results.errors {
                total.errors.entry(format!("{kind} {code}")).or_default().add(*count, message);
            }
        }
        if self.unsent > 0 {
            total.errors.entry("not sent".to_owned()).or_default().add(self.unsent, "");
        }
        Ok(total)
    }
}

impl Results {
    fn new() -> Result<Self> {
        let latencies = Histogram::new_with_bounds(SHORTEST_NANOS, LONGEST_NANOS, DIGITS);
        let latencies = latencies.context("create a histogram")?;
        Ok(Self { latencies, hits: 0, errors: BTreeMap::new() })
    }

    /// The number of requests that were answered with success.
    pub(super) fn answered(&self) -> u64 {
        self.latencies.len()
    }

    /// The number of requests that failed.
    pub(super) fn failed(&self) -> u64 {
        self.errors.values().map(|failures| failures.count).sum()
    }

    /// The mean latency, in milliseconds.
    pub(super) fn mean_ms(&self) -> f64 {
        self.latencies.mean() / 1e6
    }

    /// The longest latency, in milliseconds.
    pub(super) fn max_ms(&self) -> f64 {
        millis(self.latencies.max())
    }

    /// The latency in milliseconds that the share `quantile` of the requests did not exceed.
    pub(super) fn quantile_ms(&self, quantile: f64) -> f64 {
        // A bucket may reach beyond the longest time in it.
        millis(self.latencies.value_at_quantile(quantile).min(self.latencies.max()))
    }

    /// The whole distribution: shares of the requests, the latency in milliseconds that they did not exceed, and their number. The
    /// shares come closer to 1 in steps that halve.
    pub(super) fn distribution(&self) -> impl Iterator<Item = (f64, f64, u64)> {
        let mut count = 0;
        self.latencies.iter_quantiles(5).map(move |step| {
            count += step.count_since_last_iteration();
            (step.quantile(), millis(step.value_iterated_to().min(self.latencies.max())), count)
        })
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tally(nanos: &[u64]) -> Tally {
        let mut tally = Tally::default();
        for nanos in nanos {
            let answered = Ok(Answered { is_hit: nanos % 2 == 0 });
            tally.record(Kind::Search, Duration::from_nanos(*nanos), answered).unwrap();
        }
        tally
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_latencies(
            mut nanos in prop::collection::vec(1_000_u64..60_000_000_000, 1..300),
            quantile in 0.0..=1.0_f64,
        ) {
            let results = tally(&nanos).total().unwrap();
            nanos.sort_unstable();
            let rank = ((quantile * nanos.len() as f64).ceil() as usize).max(1);
            let exact = millis(nanos[rank - 1]);
            // Of a thousandth, and of the shortest time.
            let tolerance = exact / 1e3 + millis(SHORTEST_NANOS);
            prop_assert!((results.quantile_ms(quantile) - exact).abs() <= tolerance);
            prop_assert!((results.max_ms() - millis(*nanos.last().unwrap())).abs() <= results.max_ms() / 1e3 + 1e-4);
            prop_assert_eq!(results.answered(), nanos.len() as u64);
            let whole: Vec<_> = results.distribution().collect();
            prop_assert_eq!(whole.last().unwrap().2, nanos.len() as u64);
            prop_assert!(whole.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1 && a.2 <= b.2));
        }
    }

    #[test]
    fn failures_count_by_kind_and_code_and_have_no_latency() {
        let mut tally = tally(&[2_000, 3_001]);
        for (code, message) in [("1010", "first"), ("1010", "second"), ("connection", "closed")] {
            let failure = Failure { code: code.to_owned(), message: message.to_owned() };
            tally.record(Kind::Add, Duration::from_secs(9), Err(failure)).unwrap();
        }
        tally.unsent = 4;
        let total = tally.total().unwrap();
        let failures = |count, message: &str| Failures { count, message: message.to_owned() };
        let expected = [
            ("add 1010".to_owned(), failures(2, "first")),
            ("add connection".to_owned(), failures(1, "closed")),
            ("not sent".to_owned(), failures(4, "")),
        ];
        assert_eq!(total.errors, BTreeMap::from(expected));
        assert_eq!((total.answered(), total.failed(), total.hits), (2, 7, 1));
        assert!(total.max_ms() < 1.0);
    }

    #[test]
    fn times_beyond_the_longest_one_count_as_it() {
        let results = tally(&[u64::MAX]).total().unwrap();
        assert!((results.max_ms() / 3_600_000.0 - 1.0).abs() < 1e-2);
    }
}

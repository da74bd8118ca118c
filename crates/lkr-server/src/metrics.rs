//! Metrics in Prometheus' text format. docs/metrics.md lists them, and is generated from [`families`].

mod families;
mod gauges;
mod kinds;
mod process;

use std::{sync::Arc, time::Duration};

use lkr::{
    SearchProfile,
    ports::{
        models::{CallObserver, ModelCall},
        state::ContentionObserver,
    },
};
use lkr_webhooks::DeliveryOutcome;
use prometheus::{Registry, TextEncoder};

use crate::error::ApiError;
pub use families::{MetricFamily, MetricGroup, MetricKind, MetricLabel, metric_groups};
#[cfg(test)]
pub(crate) use gauges::RedisStatus;
pub(crate) use gauges::Snapshot;
use gauges::SnapshotGauges;
pub(crate) use kinds::{Counters, Durations};
pub(crate) use process::ProcessStatus;

/// The histogram buckets of request and search durations, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The histogram buckets of model calls and stages of ingestion, in seconds.
const LONG_BUCKETS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// The metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Counters,
    request_durations: Durations,
    searches: Durations,
    search_cache: Counters,
    search_stages: Durations,
    leg_candidates: Counters,
    slow_searches: Counters,
    deliveries: Counters,
    contention: Counters,
    model_calls: Counters,
    model_tokens: Counters,
    model_durations: Durations,
    /// Attempts of tasks.
    pub(crate) task_attempts: Counters,
    /// The stages of ingestion.
    pub(crate) task_stages: Durations,
    /// The time from the acceptance of a task to its end.
    pub(crate) task_completions: Durations,
    /// Spans of traces.
    pub(crate) trace_spans: Counters,
    /// Log lines that were dropped.
    pub(crate) dropped_log_lines: Counters,
    snapshot: SnapshotGauges,
}

/// Counts the calls of models of one purpose.
#[derive(Debug)]
struct CallCounter {
    purpose: &'static str,
    calls: Counters,
    tokens: Counters,
    durations: Durations,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let counters = |family| Counters::register(&registry, &family);
        let durations = |family, buckets: &[f64]| Durations::register(&registry, &family, buckets);
        Self {
            requests: counters(families::REQUESTS),
            request_durations: durations(families::REQUEST_DURATIONS, &BUCKETS),
            searches: durations(families::SEARCHES, &BUCKETS),
            search_cache: counters(families::SEARCH_CACHE),
            search_stages: durations(families::SEARCH_STAGES, &BUCKETS),
            leg_candidates: counters(families::LEG_CANDIDATES),
            slow_searches: counters(families::SLOW_SEARCHES),
            deliveries: counters(families::DELIVERIES),
            contention: counters(families::CONTENTION),
            model_calls: counters(families::MODEL_CALLS),
            model_tokens: counters(families::MODEL_TOKENS),
            model_durations: durations(families::MODEL_DURATIONS, &LONG_BUCKETS),
            task_attempts: counters(families::TASK_ATTEMPTS),
            task_stages: durations(families::TASK_STAGES, &LONG_BUCKETS),
            task_completions: durations(families::TASK_COMPLETIONS, &LONG_BUCKETS),
            trace_spans: counters(families::TRACE_SPANS),
            dropped_log_lines: counters(families::DROPPED_LOG_LINES),
            snapshot: SnapshotGauges::register(&registry),
            registry,
        }
    }

    /// Counts a request. An unusual method counts as `other`, so that clients cannot create labels.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = usual.into_iter().find(|usual| *usual == method).unwrap_or("other");
        self.requests.increase(&[method, route, &status.to_string()]);
        self.request_durations.observe(&[route], took);
    }

    /// Counts a search that the cache answered.
    pub(crate) fn search_hit(&self) {
        self.search_cache.increase(&["hit"]);
    }

    /// Counts a search that the cache did not answer.
    pub(crate) fn search_miss(&self, took: Duration, profile: &SearchProfile) {
        self.search_cache.increase(&["miss"]);
        self.searches.observe(&[], took);
        self.search_profile(profile);
    }

    /// Adds the stages and legs of a search.
    pub(crate) fn search_profile(&self, profile: &SearchProfile) {
        for time in &profile.stages {
            self.search_stages.observe(&[time.stage.name()], time.took);
        }
        for leg in &profile.legs {
            self.leg_candidates.add(&[leg.layer.name(), leg.kind.name()], leg.candidates as f64);
        }
    }

    /// Counts a slow search.
    pub(crate) fn slow_search(&self) {
        self.slow_searches.increase(&[]);
    }

    /// Counts webhook deliveries and their attempts by outcome.
    pub(crate) fn deliveries(&self) -> Arc<dyn Fn(DeliveryOutcome) + Send + Sync> {
        let deliveries = self.deliveries.clone();
        Arc::new(move |outcome| deliveries.increase(&[outcome.name()]))
    }

    /// Counts operations that gave up because of contention.
    pub(crate) fn contention(&self) -> ContentionObserver {
        let contention = self.contention.clone();
        ContentionObserver::new(move |operation| contention.increase(&[operation]))
    }

    /// Counts the calls of models of a purpose.
    pub(crate) fn model_calls(&self, purpose: &'static str) -> Arc<dyn CallObserver> {
        Arc::new(CallCounter {
            purpose,
            calls: self.model_calls.clone(),
            tokens: self.model_tokens.clone(),
            durations: self.model_durations.clone(),
        })
    }

    /// All metrics as text, with the state of the service at this moment.
    pub(crate) fn text(&self, snapshot: &Snapshot) -> Result<String, ApiError> {
        self.snapshot.set(snapshot);
        let mut text = String::new();
        TextEncoder::new()
            .encode_utf8(&self.registry.gather(), &mut text)
            .map_err(|error| ApiError::internal(&error))?;
        Ok(text)
    }
}

impl CallObserver for CallCounter {
    fn ended(&self, call: &ModelCall) {
        let operation = call.operation.name();
        self.calls.increase(&[self.purpose, operation, call.outcome.name()]);
        self.tokens.add(&[self.purpose, "prompt"], call.usage.prompt as f64);
        self.tokens.add(&[self.purpose, "answer"], call.usage.answer as f64);
        self.durations.observe(&[self.purpose, operation], call.took);
    }
}

#[cfg(test)]
mod tests;

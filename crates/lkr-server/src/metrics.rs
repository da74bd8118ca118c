//! Metrics in Prometheus' text format. docs/metrics.md lists them, and a test compares it with this module.

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
        let counters = |name, help, labels: &[&str]| Counters::register(&registry, name, help, labels);
        let durations = |name, help, labels: &[&str], buckets: &[f64]| {
            Durations::register(&registry, name, help, labels, buckets)
        };
        Self {
            requests: counters(
                "lkr_http_requests_total",
                "Requests by method, route and status",
                &["method", "route", "status"],
            ),
            request_durations: durations(
                "lkr_http_request_duration_seconds",
                "Time until the response, by route",
                &["route"],
                &BUCKETS,
            ),
            searches: durations(
                "lkr_search_duration_seconds",
                "Time of searches that missed the cache",
                &[],
                &BUCKETS,
            ),
            search_cache: counters("lkr_search_cache_total", "Searches by cache hit or miss", &["cache"]),
            search_stages: durations(
                "lkr_search_stage_duration_seconds",
                "Time of the stages of searches that missed the cache",
                &["stage"],
                &BUCKETS,
            ),
            leg_candidates: counters(
                "lkr_search_leg_candidates_total",
                "Candidates that the legs of searches listed",
                &["layer", "kind"],
            ),
            slow_searches: counters(
                "lkr_slow_searches_total",
                "Searches that took longer than LKR_SLOW_SEARCH_MS",
                &[],
            ),
            deliveries: counters(
                "lkr_webhook_deliveries_total",
                "Webhook deliveries by outcome",
                &["outcome"],
            ),
            contention: counters(
                "lkr_conflict_retries_exhausted_total",
                "Operations that gave up because other writers changed their records during every attempt",
                &["operation"],
            ),
            model_calls: counters(
                "lkr_model_calls_total",
                "Calls of remote models by outcome, each attempt counted",
                &["purpose", "operation", "outcome"],
            ),
            model_tokens: counters(
                "lkr_model_tokens_total",
                "Tokens of remote model calls: counted by the provider, estimated for embedding models and rerankers",
                &["purpose", "side"],
            ),
            model_durations: durations(
                "lkr_model_call_duration_seconds",
                "Time of remote model calls",
                &["purpose", "operation"],
                &LONG_BUCKETS,
            ),
            task_attempts: counters(
                "lkr_ingest_attempts_total",
                "Attempts of tasks by kind and outcome",
                &["kind", "outcome"],
            ),
            task_stages: durations(
                "lkr_ingest_stage_duration_seconds",
                "Time of the stages of tasks",
                &["stage"],
                &LONG_BUCKETS,
            ),
            task_completions: durations(
                "lkr_ingest_completion_seconds",
                "Time from the acceptance of a task until it is done",
                &["kind"],
                &LONG_BUCKETS,
            ),
            trace_spans: counters("lkr_trace_spans_total", "Spans of traces by outcome", &["outcome"]),
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

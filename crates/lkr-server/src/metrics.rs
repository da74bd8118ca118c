//! Metrics in Prometheus' text format.

use std::{sync::Arc, time::Duration};

use lkr::ports::{
    models::{CallObserver, ModelCall},
    state::ContentionObserver,
};
use lkr_webhooks::DeliveryOutcome;
use prometheus::{
    Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, Opts, Registry, TextEncoder,
};

use crate::error::ApiError;

/// The histogram buckets of request and search durations, in seconds.
const BUCKETS: [f64; 11] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0];

/// The histogram buckets of model calls, in seconds.
const MODEL_BUCKETS: [f64; 11] = [0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0, 600.0];

/// The metrics. One that cannot be registered is omitted and logged.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    requests: Option<IntCounterVec>,
    durations: Option<HistogramVec>,
    searches: Option<Histogram>,
    cache: Option<IntCounterVec>,
    deliveries: Option<IntCounterVec>,
    contention: Option<IntCounterVec>,
    queued: Option<IntGauge>,
    model_calls: Option<IntCounterVec>,
    model_tokens: Option<IntCounterVec>,
    model_durations: Option<HistogramVec>,
}

/// Counts the calls of models of one purpose.
#[derive(Debug)]
struct CallCounter {
    purpose: &'static str,
    calls: Option<IntCounterVec>,
    tokens: Option<IntCounterVec>,
    durations: Option<HistogramVec>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let registry = Registry::new();
        let durations =
            HistogramOpts::new("lkr_http_request_duration_seconds", "Time until the response, by route")
                .buckets(BUCKETS.to_vec());
        let searches =
            HistogramOpts::new("lkr_search_duration_seconds", "Time of searches that missed the cache")
                .buckets(BUCKETS.to_vec());
        let requests = Opts::new("lkr_http_requests_total", "Requests by method, route and status");
        let cache = Opts::new("lkr_search_cache_total", "Searches by cache hit or miss");
        let deliveries = Opts::new("lkr_webhook_deliveries_total", "Webhook deliveries by outcome");
        let contention = Opts::new(
            "lkr_conflict_retries_exhausted_total",
            "Operations that gave up because other writers changed their records during every attempt",
        );
        let calls =
            Opts::new("lkr_model_calls_total", "Calls of remote models by outcome, each attempt counted");
        let tokens = Opts::new(
            "lkr_model_tokens_total",
            "Tokens of remote model calls: counted by the provider, estimated for embedding models",
        );
        let model_durations =
            HistogramOpts::new("lkr_model_call_duration_seconds", "Time of remote model calls")
                .buckets(MODEL_BUCKETS.to_vec());
        Self {
            model_calls: register(&registry, IntCounterVec::new(calls, &["purpose", "operation", "outcome"])),
            model_tokens: register(&registry, IntCounterVec::new(tokens, &["purpose", "side"])),
            model_durations: register(
                &registry,
                HistogramVec::new(model_durations, &["purpose", "operation"]),
            ),
            requests: register(&registry, IntCounterVec::new(requests, &["method", "route", "status"])),
            durations: register(&registry, HistogramVec::new(durations, &["route"])),
            searches: register(&registry, Histogram::with_opts(searches)),
            cache: register(&registry, IntCounterVec::new(cache, &["cache"])),
            deliveries: register(&registry, IntCounterVec::new(deliveries, &["outcome"])),
            contention: register(&registry, IntCounterVec::new(contention, &["operation"])),
            queued: register(
                &registry,
                IntGauge::new("lkr_ingest_queue_tasks", "Tasks that are pending or running"),
            ),
            registry,
        }
    }

    /// Counts a request. An unusual method counts as `other`, so that clients cannot create labels.
    pub(crate) fn request(&self, method: &str, route: &str, status: u16, took: Duration) {
        let usual = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
        let method = usual.into_iter().find(|usual| *usual == method).unwrap_or("other");
        if let Some(requests) = &self.requests {
            requests.with_label_values(&[method, route, &status.to_string()]).inc();
        }
        if let Some(durations) = &self.durations {
            durations.with_label_values(&[route]).observe(took.as_secs_f64());
        }
    }

    /// Counts a search.
    pub(crate) fn search(&self, hit: bool, took: Duration) {
        if let Some(cache) = &self.cache {
            cache.with_label_values(&[if hit { "hit" } else { "miss" }]).inc();
        }
        if let (Some(searches), false) = (&self.searches, hit) {
            searches.observe(took.as_secs_f64());
        }
    }

    /// Counts webhook deliveries and their attempts by outcome.
    pub(crate) fn deliveries(&self) -> Arc<dyn Fn(DeliveryOutcome) + Send + Sync> {
        let deliveries = self.deliveries.clone();
        Arc::new(move |outcome| {
            if let Some(deliveries) = &deliveries {
                deliveries.with_label_values(&[outcome.name()]).inc();
            }
        })
    }

    /// Counts operations that gave up because of contention.
    pub(crate) fn contention(&self) -> ContentionObserver {
        let contention = self.contention.clone();
        ContentionObserver::new(move |operation| {
            if let Some(contention) = &contention {
                contention.with_label_values(&[operation]).inc();
            }
        })
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

    /// Sets the number of tasks that are pending or running.
    pub(crate) fn queued(&self, tasks: u64) {
        if let Some(queued) = &self.queued {
            queued.set(i64::try_from(tasks).unwrap_or(i64::MAX));
        }
    }

    /// All metrics as text.
    pub(crate) fn text(&self) -> Result<String, ApiError> {
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
        if let Some(calls) = &self.calls {
            calls.with_label_values(&[self.purpose, operation, call.outcome.name()]).inc();
        }
        if let Some(tokens) = &self.tokens {
            tokens.with_label_values(&[self.purpose, "prompt"]).inc_by(call.usage.prompt);
            tokens.with_label_values(&[self.purpose, "answer"]).inc_by(call.usage.answer);
        }
        if let Some(durations) = &self.durations {
            durations.with_label_values(&[self.purpose, operation]).observe(call.took.as_secs_f64());
        }
    }
}

fn register<T: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: prometheus::Result<T>,
) -> Option<T> {
    let registered = metric.and_then(|metric| {
        registry.register(Box::new(metric.clone()))?;
        Ok(metric)
    });
    registered.inspect_err(|error| tracing::error!(%error, "cannot register a metric; it is omitted")).ok()
}

//! What a frame shows: the state of a server, and its rates between two moments.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{SystemTime, UNIX_EPOCH},
};

use serde::Serialize;
use serde_json::Value;

use super::{
    exposition::{Sample, Samples},
    histogram::{Histogram, since},
};

/// What a server tells of its readiness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Readiness {
    pub(super) status: String,
    pub(super) version: String,
    /// The dependencies that are not ok.
    pub(super) problems: Vec<Problem>,
}

/// A dependency that is not ok.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    pub(super) dependency: String,
    pub(super) status: String,
    pub(super) reason: String,
}

/// The median and the 99th percentile, in seconds; `None` without observations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Latency {
    pub(super) p50: Option<f64>,
    pub(super) p99: Option<f64>,
}

/// The calls of models for a purpose.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct ModelCalls {
    pub(super) purpose: String,
    #[serde(rename = "calls_per_second")]
    pub(super) per_second: f64,
    pub(super) errors_per_second: f64,
    #[serde(rename = "latency_seconds")]
    pub(super) latency: Latency,
}

/// The figures of a frame. Rates are per second. `lkr top --json` prints it, with the units in the names.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct View {
    #[serde(rename = "requests_per_second")]
    pub(super) requests: f64,
    /// Responses with a status of 500 or above.
    #[serde(rename = "request_errors_per_second")]
    pub(super) request_errors: f64,
    #[serde(rename = "request_latency_seconds")]
    pub(super) request_latency: Latency,
    pub(super) in_flight: f64,
    #[serde(rename = "searches_per_second")]
    pub(super) searches: f64,
    #[serde(rename = "search_latency_seconds")]
    pub(super) search_latency: Latency,
    #[serde(rename = "slow_searches_per_second")]
    pub(super) slow_searches: f64,
    /// The share of searches that the cache answered; `None` without searches.
    pub(super) cache_hits: Option<f64>,
    pub(super) cache_entries: Option<f64>,
    pub(super) cache_bytes: Option<f64>,
    /// The stages of searches with their mean durations in seconds.
    #[serde(rename = "stage_mean_seconds")]
    pub(super) stages: BTreeMap<String, f64>,
    #[serde(rename = "documents_per_second")]
    pub(super) documents: f64,
    #[serde(rename = "failed_attempts_per_second")]
    pub(super) failed_attempts: f64,
    #[serde(rename = "completion_seconds")]
    pub(super) completion: Latency,
    #[serde(rename = "queue_tasks")]
    pub(super) queue: Option<f64>,
    #[serde(rename = "oldest_task_age_seconds")]
    pub(super) oldest_age: Option<f64>,
    pub(super) workers: Option<f64>,
    #[serde(rename = "running_tasks")]
    pub(super) running: Option<f64>,
    pub(super) models: Vec<ModelCalls>,
    #[serde(rename = "memory_bytes")]
    pub(super) memory: Option<f64>,
    /// Processor time per second: 1 is one core.
    #[serde(rename = "processor_seconds_per_second")]
    pub(super) processor: f64,
    pub(super) open_files: Option<f64>,
    pub(super) store_bytes: Option<f64>,
    /// The age of the process in seconds.
    #[serde(rename = "uptime_seconds")]
    pub(super) uptime: Option<f64>,
}

impl Readiness {
    /// Reads the envelope of `GET /readyz`.
    pub(super) fn of(envelope: &Value) -> Self {
        let text = |path: &str| envelope.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let dependencies = envelope.pointer("/data/dependencies").and_then(Value::as_object);
        let dependencies = dependencies.into_iter().flatten();
        let problem = |(name, status): (&String, &Value)| {
            let status = status.as_str().unwrap_or_default();
            let reason = text(&format!("/data/checks/{name}/reason"));
            (status != "ok").then(|| Problem { dependency: name.clone(), status: status.to_owned(), reason })
        };
        Self {
            status: text("/data/status"),
            version: text("/data/version"),
            problems: dependencies.filter_map(problem).collect(),
        }
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        Self { p50: histogram.quantile(0.50), p99: histogram.quantile(0.99) }
    }
}

/// Two moments, and the seconds between them.
#[derive(Clone, Copy)]
struct Interval<'a> {
    before: &'a Samples,
    now: &'a Samples,
    seconds: f64,
}

impl Interval<'_> {
    fn rate(&self, name: &str, keep: impl Fn(&Sample) -> bool + Copy) -> f64 {
        let increase = since(self.before.sum(name, keep), self.now.sum(name, keep));
        if self.seconds > 0.0 { increase / self.seconds } else { 0.0 }
    }

    fn histogram(&self, name: &str, keep: impl Fn(&Sample) -> bool + Copy) -> Histogram {
        Histogram::between(self.before, self.now, name, keep)
    }

    fn latency(&self, name: &str, keep: impl Fn(&Sample) -> bool + Copy) -> Latency {
        Latency::of(&self.histogram(name, keep))
    }

    /// The values of a label of a metric, sorted.
    fn label_values(&self, name: &str, label: &str) -> BTreeSet<String> {
        self.now.of(name).map(|sample| sample.label(label).to_owned()).collect()
    }

    /// The stages that searches went through, with their mean durations.
    fn stages(&self) -> BTreeMap<String, f64> {
        const STAGES: &str = "lkr_search_stage_duration_seconds";
        let stages = self.label_values(&format!("{STAGES}_count"), "stage").into_iter();
        let mean = |stage: String| {
            let mean = self.histogram(STAGES, |sample| sample.label("stage") == stage).mean()?;
            Some((stage, mean))
        };
        stages.filter_map(mean).collect()
    }

    fn models(&self) -> Vec<ModelCalls> {
        const CALLS: &str = "lkr_model_calls_total";
        let calls = |purpose: String| {
            let of_purpose = |sample: &Sample| sample.label("purpose") == purpose;
            let failed = |sample: &Sample| {
                of_purpose(sample) && !matches!(sample.label("outcome"), "answered" | "given_up")
            };
            ModelCalls {
                per_second: self.rate(CALLS, of_purpose),
                errors_per_second: self.rate(CALLS, failed),
                latency: self.latency("lkr_model_call_duration_seconds", of_purpose),
                purpose: purpose.clone(),
            }
        };
        self.label_values(CALLS, "purpose").into_iter().map(calls).collect()
    }
}

impl View {
    /// The figures at the second of two moments that are `seconds` apart.
    pub(super) fn between(before: &Samples, now: &Samples, seconds: f64) -> Self {
        let interval = Interval { before, now, seconds };
        let any = |_: &Sample| true;
        let (cache, attempts) = ("lkr_search_cache_total", "lkr_ingest_attempts_total");
        let searches = interval.rate(cache, any);
        let hits = interval.rate(cache, |sample| sample.label("cache") == "hit");
        let is_document = |sample: &Sample| matches!(sample.label("kind"), "ingest" | "replace");
        Self {
            requests: interval.rate("lkr_http_requests_total", any),
            request_errors: interval
                .rate("lkr_http_requests_total", |sample| sample.label("status").starts_with('5')),
            request_latency: interval.latency("lkr_http_request_duration_seconds", any),
            in_flight: now.value("lkr_http_requests_in_flight").unwrap_or_default(),
            searches,
            search_latency: interval.latency("lkr_search_duration_seconds", any),
            slow_searches: interval.rate("lkr_slow_searches_total", any),
            cache_hits: (searches > 0.0).then(|| hits / searches),
            cache_entries: now.value("lkr_search_cache_entries"),
            cache_bytes: now.value("lkr_search_cache_bytes"),
            stages: interval.stages(),
            documents: interval
                .rate(attempts, |sample| is_document(sample) && sample.label("outcome") == "done"),
            failed_attempts: interval
                .rate(attempts, |sample| matches!(sample.label("outcome"), "failed" | "retried")),
            completion: interval.latency("lkr_ingest_completion_seconds", is_document),
            queue: now.value("lkr_ingest_queue_tasks"),
            oldest_age: now.value("lkr_ingest_oldest_task_age_seconds"),
            workers: now.value("lkr_ingest_workers"),
            running: now.value("lkr_ingest_running_tasks"),
            models: interval.models(),
            memory: now.value("process_resident_memory_bytes"),
            processor: interval.rate("process_cpu_seconds_total", any),
            open_files: now.value("process_open_fds"),
            store_bytes: now.value("lkr_store_disk_bytes"),
            uptime: now.value("process_start_time_seconds").map(age),
        }
    }
}

/// The seconds since a time, which is in seconds since 1970.
fn age(started: f64) -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    (now - started).max(0.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn samples(requests: u32, hits: u32, misses: u32, done: u32) -> Samples {
        let text = format!(
            "lkr_http_requests_total{{method=\"GET\",route=\"/a\",status=\"200\"}} {requests}\n\
             lkr_http_requests_total{{method=\"GET\",route=\"/a\",status=\"503\"}} 4\n\
             lkr_search_cache_total{{cache=\"hit\"}} {hits}\nlkr_search_cache_total{{cache=\"miss\"}} {misses}\n\
             lkr_ingest_attempts_total{{kind=\"ingest\",outcome=\"done\"}} {done}\n\
             lkr_ingest_attempts_total{{kind=\"reembed\",outcome=\"done\"}} {done}\n\
             lkr_ingest_attempts_total{{kind=\"replace\",outcome=\"failed\"}} {done}\n\
             lkr_model_calls_total{{purpose=\"embed\",operation=\"x\",outcome=\"answered\"}} {hits}\n\
             lkr_model_calls_total{{purpose=\"embed\",operation=\"x\",outcome=\"unavailable\"}} {misses}\n\
             lkr_search_stage_duration_seconds_count{{stage=\"legs\"}} {misses}\n\
             lkr_search_stage_duration_seconds_sum{{stage=\"legs\"}} {misses}\nlkr_ingest_queue_tasks 3\n"
        );
        Samples::parse(&text).unwrap()
    }

    #[test]
    fn rates_are_increases_per_second() {
        let view = View::between(&samples(100, 10, 10, 0), &samples(150, 40, 20, 5), 2.0);
        assert_eq!((view.requests, view.request_errors), (25.0, 0.0));
        assert_eq!((view.searches, view.cache_hits), (20.0, Some(0.75)));
        assert_eq!((view.documents, view.failed_attempts), (2.5, 2.5));
        let [embed] = &*view.models else { panic!("{:?}", view.models) };
        assert_eq!((embed.per_second, embed.errors_per_second), (20.0, 5.0));
        assert_eq!(view.stages, BTreeMap::from([("legs".to_owned(), 1.0)]));
        assert_eq!((view.queue, view.workers), (Some(3.0), None));
    }

    #[test]
    fn one_moment_has_no_rates() {
        let now = samples(100, 10, 10, 5);
        let view = View::between(&now, &now, 0.0);
        assert_eq!((view.requests, view.cache_hits, view.request_latency), (0.0, None, Latency::default()));
    }

    #[test]
    fn readiness_names_problems_with_their_reasons() {
        let ready = Readiness::of(&json!({ "code": 0, "data": {
            "status": "degraded", "version": "1.2.3",
            "dependencies": { "state": "ok", "embedder": "degraded" },
            "checks": { "embedder": { "reason": "no embedding model" } },
        }}));
        let [dependency, status, reason] = ["embedder", "degraded", "no embedding model"].map(str::to_owned);
        assert_eq!((ready.status.as_str(), ready.version.as_str()), ("degraded", "1.2.3"));
        assert_eq!(ready.problems, [Problem { dependency, status, reason }]);
        assert_eq!(Readiness::of(&json!({ "code": 1010, "data": null })), Readiness::default());
    }
}

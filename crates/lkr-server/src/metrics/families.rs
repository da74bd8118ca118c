//! The families of metrics: what is registered, exposed and documented of each. docs/metrics.md is rendered from them.

/// How the values of a family are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that grows and falls.
    Gauge,
    /// Observations in buckets.
    Histogram,
}

impl MetricKind {
    /// Its name in the exposition.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A label of a family. Labels of several families may have the same name and different values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricLabel {
    /// The name.
    pub name: &'static str,
    /// The values that it can have, which bound the number of series.
    pub values: &'static str,
}

/// A family of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricFamily {
    /// The name.
    pub name: &'static str,
    /// The kind.
    pub kind: MetricKind,
    /// The labels, in the order in which their values are given.
    pub labels: &'static [MetricLabel],
    /// What it means: the help text of the exposition.
    pub help: &'static str,
}

/// Families about one part of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricGroup {
    /// The part.
    pub title: &'static str,
    /// The families, in the order of the page.
    pub families: &'static [MetricFamily],
}

/// All families.
#[must_use]
pub const fn metric_groups() -> &'static [MetricGroup] {
    &GROUPS
}

const fn counter(name: &'static str, labels: &'static [MetricLabel], help: &'static str) -> MetricFamily {
    MetricFamily { name, kind: MetricKind::Counter, labels, help }
}

const fn gauge(name: &'static str, help: &'static str) -> MetricFamily {
    MetricFamily { name, kind: MetricKind::Gauge, labels: &[], help }
}

const fn histogram(name: &'static str, labels: &'static [MetricLabel], help: &'static str) -> MetricFamily {
    MetricFamily { name, kind: MetricKind::Histogram, labels, help }
}

const fn label(name: &'static str, values: &'static str) -> MetricLabel {
    MetricLabel { name, values }
}

const METHOD: MetricLabel = label(
    "method",
    "7 methods, `other`, and `unknown` for requests that are refused before their head is complete",
);
const ROUTE: MetricLabel =
    label("route", "the routes of the API with their parameters in braces, and `unknown`");
const STATUS: MetricLabel = label("status", "the statuses that the server answers, about 20");
const CACHE: MetricLabel = label("cache", "2: hit, miss");
const SEARCH_STAGE: MetricLabel =
    label("stage", "8: admission, encode, legs, fuse, read, rerank, assemble, summarize");
const LAYER: MetricLabel = label("layer", "4: l1, l2, l3, chunks");
const LEG_KIND: MetricLabel = label("kind", "2: dense, sparse");
const TASK_KIND: MetricLabel =
    label("kind", "7: ingest, replace, reembed, reclassify, evaluate, delete_space, delete_where");
const ATTEMPT_OUTCOME: MetricLabel = label(
    "outcome",
    "4: done, failed, retried (another attempt follows), interrupted (cancelled, or waiting for another task or a store)",
);
const TASK_STAGE: MetricLabel =
    label("stage", "8: parse, layer, describe, embed, classify, evaluate, publish, delete");
const PURPOSE: MetricLabel = label("purpose", "4: embed, rerank, summarize, classify");
const MODEL_OPERATION: MetricLabel =
    label("operation", "5: complete, stream, embed_queries, embed_passages, rerank");
const CALL_OUTCOME: MetricLabel =
    label("outcome", "8: answered, given_up, config, unavailable, throttled, too_large, input, internal");
const SIDE: MetricLabel = label("side", "2: prompt, answer");
const DELIVERY_OUTCOME: MetricLabel = label("outcome", "4: delivered, retried, expired, dropped");
const CONFLICTING: MetricLabel = label("operation", "the operations in the code, about 20");
const VERSION: MetricLabel = label("version", "1: the version of the server");
const SPAN_OUTCOME: MetricLabel =
    label("outcome", "3: exported, dropped (the queue was full), failed (the collector did not accept it)");

pub(super) const REQUESTS: MetricFamily =
    counter("lkr_http_requests_total", &[METHOD, ROUTE, STATUS], "Requests.");
pub(super) const REQUEST_DURATIONS: MetricFamily =
    histogram("lkr_http_request_duration_seconds", &[ROUTE], "Time until the response begins.");
pub(super) const IN_FLIGHT: MetricFamily = gauge(
    "lkr_http_requests_in_flight",
    "Requests whose response is not sent completely, event streams and downloads included.",
);

pub(super) const SEARCH_CACHE: MetricFamily =
    counter("lkr_search_cache_total", &[CACHE], "Searches that the cache answered or missed.");
pub(super) const SEARCHES: MetricFamily = histogram(
    "lkr_search_duration_seconds",
    &[],
    "Time of searches that missed the cache; of streamed ones, without the summary.",
);
pub(super) const SEARCH_STAGES: MetricFamily = histogram(
    "lkr_search_stage_duration_seconds",
    &[SEARCH_STAGE],
    "Time of each stage of searches that missed the cache, and of contexts. Keyword legs may begin during encode; legs is the time that all legs take after it.",
);
pub(super) const LEG_CANDIDATES: MetricFamily = counter(
    "lkr_search_leg_candidates_total",
    &[LAYER, LEG_KIND],
    "Candidates that the legs of searches listed.",
);
pub(super) const SLOW_SEARCHES: MetricFamily = counter(
    "lkr_slow_searches_total",
    &[],
    "Searches and contexts that took longer than LKR_SLOW_SEARCH_MS.",
);
pub(super) const CACHE_ENTRIES: MetricFamily =
    gauge("lkr_search_cache_entries", "Responses in the search cache.");
pub(super) const CACHE_BYTES: MetricFamily =
    gauge("lkr_search_cache_bytes", "Memory of the responses in the search cache, about.");

pub(super) const QUEUED: MetricFamily = gauge("lkr_ingest_queue_tasks", "Tasks that are pending or running.");
pub(super) const OLDEST: MetricFamily = gauge(
    "lkr_ingest_oldest_task_age_seconds",
    "Age of the oldest task that is pending or running; 0 if there is none.",
);
pub(super) const WORKERS: MetricFamily = gauge("lkr_ingest_workers", "Workers.");
pub(super) const RUNNING: MetricFamily = gauge(
    "lkr_ingest_running_tasks",
    "Tasks in progress. Long texts and tasks over all documents come on top of the workers.",
);
pub(super) const TASK_ATTEMPTS: MetricFamily =
    counter("lkr_ingest_attempts_total", &[TASK_KIND, ATTEMPT_OUTCOME], "Attempts of tasks.");
pub(super) const TASK_STAGES: MetricFamily = histogram(
    "lkr_ingest_stage_duration_seconds",
    &[TASK_STAGE],
    "Time of each stage of an attempt of a task.",
);
pub(super) const TASK_COMPLETIONS: MetricFamily = histogram(
    "lkr_ingest_completion_seconds",
    &[TASK_KIND],
    "Time from the acceptance of a task until it is done: of a document, until it is searchable.",
);

pub(super) const MODEL_CALLS: MetricFamily = counter(
    "lkr_model_calls_total",
    &[PURPOSE, MODEL_OPERATION, CALL_OUTCOME],
    "Calls of remote models; each attempt counts.",
);
pub(super) const MODEL_TOKENS: MetricFamily = counter(
    "lkr_model_tokens_total",
    &[PURPOSE, SIDE],
    "Tokens of remote model calls, as the provider counts them; of embedding models and rerankers, an estimate.",
);
pub(super) const MODEL_DURATIONS: MetricFamily =
    histogram("lkr_model_call_duration_seconds", &[PURPOSE, MODEL_OPERATION], "Time of remote model calls.");

pub(super) const DELIVERIES: MetricFamily = counter(
    "lkr_webhook_deliveries_total",
    &[DELIVERY_OUTCOME],
    "Deliveries to webhooks, and their attempts.",
);
pub(super) const CONTENTION: MetricFamily = counter(
    "lkr_conflict_retries_exhausted_total",
    &[CONFLICTING],
    "Operations that gave up because other writers changed their records during every attempt.",
);
pub(super) const STORE_BYTES: MetricFamily =
    gauge("lkr_store_disk_bytes", "Disk space of the embedded store, without texts and originals.");
pub(super) const REDIS_AWAY: MetricFamily = gauge(
    "lkr_redis_away",
    "1 while accounts go on from memory because Redis is away, otherwise 0; with LKR_STATE=redis.",
);
pub(super) const JOURNAL_STEPS: MetricFamily = gauge(
    "lkr_redis_journal_steps",
    "Changes made while Redis was away that it does not have yet; with LKR_STATE=redis.",
);

pub(super) const BUILD: MetricFamily = MetricFamily {
    name: "lkr_build_info",
    kind: MetricKind::Gauge,
    labels: &[VERSION],
    help: "Always 1; its label tells the build.",
};
pub(super) const TRACE_SPANS: MetricFamily =
    counter("lkr_trace_spans_total", &[SPAN_OUTCOME], "Spans of traces, if there is a collector.");
pub(super) const DROPPED_LOG_LINES: MetricFamily = counter(
    "lkr_log_lines_dropped_total",
    &[],
    "Log lines that were dropped because what reads stderr did not keep up.",
);
pub(super) const PROCESSOR_TIME: MetricFamily = counter(
    "process_cpu_seconds_total",
    &[],
    "Processor time of the process. Parser workers are processes of their own. Read from /proc, on Linux.",
);
pub(super) const MEMORY: MetricFamily =
    gauge("process_resident_memory_bytes", "Resident memory of the process. Read from /proc, on Linux.");
pub(super) const OPEN_FILES: MetricFamily = gauge(
    "process_open_fds",
    "Open file descriptors of the process. Read from /proc, on Linux. Unknown to a server that is not root on Linux before \
     6.2, and then not shown.",
);
pub(super) const STARTED: MetricFamily = gauge(
    "process_start_time_seconds",
    "Start of the process, in seconds since 1970. Read from /proc, on Linux.",
);

const GROUPS: [MetricGroup; 6] = [
    MetricGroup { title: "Requests", families: &[REQUESTS, REQUEST_DURATIONS, IN_FLIGHT] },
    MetricGroup {
        title: "Searches",
        families: &[
            SEARCH_CACHE,
            SEARCHES,
            SEARCH_STAGES,
            LEG_CANDIDATES,
            SLOW_SEARCHES,
            CACHE_ENTRIES,
            CACHE_BYTES,
        ],
    },
    MetricGroup {
        title: "Ingestion",
        families: &[QUEUED, OLDEST, WORKERS, RUNNING, TASK_ATTEMPTS, TASK_STAGES, TASK_COMPLETIONS],
    },
    MetricGroup { title: "Models", families: &[MODEL_CALLS, MODEL_TOKENS, MODEL_DURATIONS] },
    MetricGroup {
        title: "Webhooks and stores",
        families: &[DELIVERIES, CONTENTION, STORE_BYTES, REDIS_AWAY, JOURNAL_STEPS],
    },
    MetricGroup {
        title: "The server",
        families: &[BUILD, TRACE_SPANS, DROPPED_LOG_LINES, PROCESSOR_TIME, MEMORY, OPEN_FILES, STARTED],
    },
];

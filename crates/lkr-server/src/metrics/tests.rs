use std::collections::BTreeSet;

use lkr::{
    CacheSize, Layer, QueueStatus, SearchStage, WorkerStatus,
    ports::{
        models::{CallOutcome, Operation, TokenUsage},
        state::{MemoryState, ObservedState, StateStore},
    },
    retrieval::{LegCandidates, LegKind, StageTime},
};

use super::*;

/// A metric: its name, its type and its labels.
type Metric = (String, String, BTreeSet<String>);

const SECOND: Duration = Duration::from_secs(1);

/// The text after every metric was used.
fn exposed_text() -> String {
    let metrics = Metrics::new();
    let profile = SearchProfile {
        stages: vec![StageTime { stage: SearchStage::Legs, took: SECOND }],
        legs: vec![LegCandidates { layer: Layer::L1, kind: LegKind::Dense, candidates: 3 }],
    };
    metrics.request("GET", "/readyz", 200, SECOND);
    metrics.search_hit();
    metrics.search_miss(SECOND, &profile);
    metrics.slow_search();
    metrics.deliveries()(DeliveryOutcome::Delivered);
    ObservedState::new(Arc::new(MemoryState::default()), metrics.contention()).report_contention("publish");
    metrics.model_calls("embed").ended(&ModelCall {
        operation: Operation::EmbedQueries,
        took: SECOND,
        usage: TokenUsage { prompt: 1, answer: 1 },
        outcome: CallOutcome::Answered,
    });
    metrics.task_attempts.increase(&["ingest", "done"]);
    metrics.task_stages.observe(&["parse"], SECOND);
    metrics.task_completions.observe(&["ingest"], SECOND);
    metrics.trace_spans.increase(&["exported"]);
    let process = ProcessStatus {
        resident_bytes: Some(1),
        open_files: Some(1),
        processor_seconds: Some(1.0),
        started: Some(1.0),
    };
    let snapshot = Snapshot {
        in_flight: 1,
        queue: Some(QueueStatus { tasks: 1, oldest: Some(SECOND) }),
        workers: WorkerStatus { workers: 8, busy: 1 },
        cache: Some(CacheSize { entries: 1, bytes: 1 }),
        store_bytes: Some(1),
        redis: Some(RedisStatus { is_away: true, journal_steps: 1 }),
        process,
    };
    metrics.text(&snapshot).unwrap()
}

/// The metrics of a text.
fn exposed(text: &str) -> BTreeSet<Metric> {
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types.map(|(name, kind)| (name.to_owned(), kind.to_owned(), labels(text, name))).collect()
}

/// The labels of a metric's samples, without the bounds of buckets.
fn labels(text: &str, name: &str) -> BTreeSet<String> {
    let of_metric = |line: &&str| {
        let sample = line.split(['{', ' ']).next().unwrap_or_default();
        let suffix = sample.strip_prefix(name);
        matches!(suffix, Some("" | "_bucket" | "_sum" | "_count"))
    };
    let lists = text.lines().filter(of_metric).filter_map(|line| Some(line.split_once('{')?.1));
    let labels = lists.flat_map(|list| list.split("\",").filter_map(|label| Some(label.split_once('=')?.0)));
    labels.filter(|label| *label != "le").map(str::to_owned).collect()
}

/// The families that docs/metrics.md is rendered from.
fn documented() -> BTreeSet<Metric> {
    let families = metric_groups().iter().flat_map(|group| group.families);
    let labels = |family: &MetricFamily| family.labels.iter().map(|label| label.name.to_owned()).collect();
    families.map(|family| (family.name.to_owned(), family.kind.name().to_owned(), labels(family))).collect()
}

#[test]
fn groups_list_exactly_the_metrics_that_exist() {
    let text = exposed_text();
    let (exposed, documented) = (exposed(&text), documented());
    let undocumented: Vec<_> = exposed.difference(&documented).collect();
    let missing: Vec<_> = documented.difference(&exposed).collect();
    assert!(undocumented.is_empty(), "no group lists {undocumented:?}");
    assert!(missing.is_empty(), "a group lists what does not exist: {missing:?}");
    assert!(exposed.len() > 25, "{exposed:?}");
    for family in metric_groups().iter().flat_map(|group| group.families) {
        let help = format!("# HELP {} {}\n", family.name, family.help);
        assert!(text.contains(&help), "{} has another help text in the exposition", family.name);
    }
}

#[test]
fn types_and_labels_are_read_from_the_exposition() {
    let text = "# TYPE a counter\na{x=\"1\",y=\"2\"} 1\n# TYPE b histogram\nb_bucket{z=\"1\",le=\"1\"} 1\n";
    let labels = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let expected = BTreeSet::from([
        ("a".to_owned(), "counter".to_owned(), labels(&["x", "y"])),
        ("b".to_owned(), "histogram".to_owned(), labels(&["z"])),
    ]);
    assert_eq!(exposed(text), expected);
}

#[test]
fn processor_time_never_falls() {
    let metrics = Metrics::new();
    let text = |seconds| {
        let process = ProcessStatus { processor_seconds: Some(seconds), ..ProcessStatus::default() };
        metrics.text(&Snapshot { process, ..Snapshot::default() }).unwrap()
    };
    assert!(text(5.0).contains("process_cpu_seconds_total 5\n"));
    assert!(text(4.0).contains("process_cpu_seconds_total 5\n"));
    let unknown = text(6.5);
    assert!(unknown.contains("process_cpu_seconds_total 6.5\n"));
    assert!(!unknown.contains("process_open_fds "), "what is unknown must not be shown as 0");
}

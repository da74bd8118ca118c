//! A frame as text.

use super::view::{Latency, Problem, Readiness, View};
use crate::terminal::{size, wrap};

/// The columns that a frame takes at most.
const WIDTH: usize = 80;

/// What is before the continuation of a line.
const INDENT: &str = "  ";

/// The lines of a frame, each with a line feed. None is wider than a narrow terminal.
pub(super) fn render(server: &str, ready: &Readiness, view: &View) -> String {
    let mut lines = vec![wrap(&head(server, ready, view), WIDTH, "")];
    lines.extend(ready.problems.iter().map(|Problem { dependency, status, reason }| {
        wrap(&format!("{dependency} is {status}: {reason}"), WIDTH, INDENT)
    }));
    lines.push("\n".to_owned());
    lines.push(line(
        "requests",
        [
            rate(view.requests),
            latency(view.request_latency),
            format!("in flight {:.0}, errors {}", view.in_flight, rate(view.request_errors)),
        ],
    ));
    lines.push(line(
        "searches",
        [
            rate(view.searches),
            latency(view.search_latency),
            format!("cache hits {}, slow {}", percent(view.cache_hits), rate(view.slow_searches)),
        ],
    ));
    if !view.stages.is_empty() {
        let stages = view.stages.iter().map(|(stage, mean)| format!("{stage} {}", time(Some(*mean))));
        let stages = format!("mean of each stage: {}", stages.collect::<Vec<_>>().join(", "));
        lines.push(wrap(&stages, WIDTH, INDENT));
    }
    lines.push(line(
        "documents",
        [
            rate(view.documents),
            latency(view.completion),
            format!(
                "queue {}, oldest {}, running {} of {} workers, failures {}",
                number(view.queue),
                time(view.oldest_age.filter(|age| *age > 0.0)),
                number(view.running),
                number(view.workers),
                rate(view.failed_attempts)
            ),
        ],
    ));
    for model in &view.models {
        let errors = format!("errors {}", rate(model.errors_per_second));
        lines.push(line(&model.purpose, [rate(model.per_second), latency(model.latency), errors]));
    }
    lines.push("\n".to_owned());
    lines.push(process(view));
    lines.concat()
}

fn head(server: &str, ready: &Readiness, view: &View) -> String {
    let status = if ready.status.is_empty() { "unknown" } else { &ready.status };
    let up = view.uptime.map(|age| format!(", up {}", time(Some(age)))).unwrap_or_default();
    format!("lkr {} at {server}: {status}{up}", ready.version)
}

/// A line, or two if it would be too wide.
fn line(name: &str, [rate, latency, rest]: [String; 3]) -> String {
    let begin = format!("{name:<10} {rate:>10}  {latency}");
    let line = format!("{begin}  {rest}");
    if line.chars().count() <= WIDTH {
        return format!("{line}\n");
    }
    format!("{begin}\n{}", wrap(&rest, WIDTH, INDENT))
}

fn process(view: &View) -> String {
    format!(
        "memory {}, processor {}, files {}, store {}\ncache {} responses in {}\n",
        bytes(view.memory),
        percent(Some(view.processor)),
        number(view.open_files),
        bytes(view.store_bytes),
        number(view.cache_entries),
        bytes(view.cache_bytes)
    )
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.1}/s")
}

fn latency(latency: Latency) -> String {
    format!("p50 {:>8}  p99 {:>8}", time(latency.p50), time(latency.p99))
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// A duration in the unit that suits it.
fn time(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".to_owned(),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) if seconds < 120.0 => format!("{seconds:.1} s"),
        Some(seconds) if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        Some(seconds) if seconds < 172_800.0 => format!("{:.0} h", seconds / 3_600.0),
        Some(seconds) => format!("{:.0} d", seconds / 86_400.0),
    }
}

fn bytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| size(bytes as u64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::top::view::ModelCalls;

    #[test]
    fn frame_shows_every_figure_and_no_escape_codes() {
        let view = View {
            requests: 12.34,
            request_latency: Latency { p50: Some(0.002), p99: Some(1.5) },
            searches: 8.0,
            cache_hits: Some(0.456),
            stages: BTreeMap::from([("legs".to_owned(), 0.0042)]),
            documents: 3.0,
            queue: Some(17.0),
            oldest_age: Some(300.0),
            running: Some(3.0),
            workers: Some(8.0),
            models: vec![ModelCalls {
                purpose: "embed".to_owned(),
                per_second: 2.0,
                errors_per_second: 0.5,
                latency: Latency::default(),
            }],
            memory: Some(2e9),
            processor: 0.5,
            uptime: Some(10_000.0),
            ..View::default()
        };
        let ready = Readiness {
            status: "degraded".to_owned(),
            version: "0.1.0".to_owned(),
            problems: vec![Problem {
                dependency: "embedder".to_owned(),
                status: "degraded".to_owned(),
                reason: "no model".to_owned(),
            }],
        };
        let frame = render("http://h", &ready, &view);
        for part in [
            "lkr 0.1.0 at http://h: degraded, up 3 h\n  embedder is degraded: no model\n",
            "12.3/s  p50   2.0 ms  p99    1.5 s",
            "cache hits 46 %",
            "legs 4.2 ms",
            "queue 17, oldest 5 min, running 3 of 8 workers",
            "embed           2.0/s",
            "errors 0.5/s",
            "memory 2.0 GB, processor 50 %, files -",
        ] {
            assert!(frame.contains(part), "{part:?} is missing in\n{frame}");
        }
        assert_eq!(frame.lines().find(|line| line.chars().count() > 80), None);
        assert!(!frame.contains('\x1b') && frame.lines().all(|line| line.trim_end() == line));
    }
}

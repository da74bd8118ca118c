//! The results of a load as tables of at most 80 columns, and as JSON.

use std::fmt::Write as _;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    bench::load::{
        documents::Ended,
        kind::Kind,
        tally::{Failures, Results, Tally},
    },
    terminal::plural,
};

/// The quantiles of a line.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A step: the results of one number of clients at one rate.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) clients: usize,
    /// The requests that were due in a second; `None` in a closed loop.
    pub(super) rate: Option<f64>,
    /// The duration, in seconds.
    pub(super) seconds: f64,
    pub(super) tally: Tally,
    /// The processor time of the server, in seconds; `None` if it is not known.
    pub(super) cpu_seconds: Option<f64>,
    /// The resident memory of the server at the end, in bytes; `None` if it is not known.
    pub(super) memory_bytes: Option<f64>,
    /// The added documents; `None` without any.
    pub(super) ingestion: Option<Ingestion>,
}

/// What became of the documents that a step added.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ingestion {
    pub(super) ended: Ended,
    /// The time from the first request of the warm-up to the end of the last task, in seconds.
    pub(super) seconds: f64,
}

impl Step {
    /// The requests that failed, those that were not sent, and the added documents that failed.
    pub(super) fn failed(&self) -> Result<u64> {
        let documents = self.ingestion.map_or(0, |ingestion| ingestion.ended.failed);
        Ok(self.tally.total()?.failed() + documents)
    }

    /// Processor time of the server for each request that was sent, in milliseconds.
    fn cpu_ms(&self, total: &Results) -> Option<f64> {
        let sent = (total.answered() + total.failed()).saturating_sub(self.tally.unsent);
        let requests = sent.max(1) as f64;
        self.cpu_seconds.map(|seconds| seconds * 1e3 / requests)
    }

    fn megabytes(&self) -> Option<f64> {
        self.memory_bytes.map(|bytes| bytes / 1e6)
    }
}

/// The results as text: of one step a line for each kind of request, of several steps a line for each of them.
pub(super) fn text(steps: &[Step]) -> Result<String> {
    let mut text = String::new();
    match steps {
        [step] => kinds(&mut text, step)?,
        steps => table(&mut text, steps)?,
    }
    for step in steps {
        notes(&mut text, step, steps.len() > 1)?;
    }
    Ok(text)
}

/// A line for each kind of request, and for all together.
fn kinds(text: &mut String, step: &Step) -> Result<()> {
    writeln!(
        text,
        "{:<8} {:>8} {:>6} {:>7} {:>4} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "ms", "requests", "errors", "/s", "hits", "mean", "p50", "p90", "p99", "p99.9", "max"
    )?;
    let mut line = |name: &str, results: &Results| {
        let answered = results.answered();
        let rate = rate(answered as f64 / step.seconds);
        let hits = format!("{:.0}%", 100.0 * results.hits as f64 / answered.max(1) as f64);
        let failed = results.failed();
        write!(text, "{name:<8} {answered:>8} {failed:>6} {rate:>7} {hits:>4} {:>6}", ms(results.mean_ms()))?;
        for quantile in QUANTILES {
            write!(text, " {:>6}", ms(results.quantile_ms(quantile)))?;
        }
        writeln!(text, " {:>6}", ms(results.max_ms()))
    };
    for (kind, results) in &step.tally.kinds {
        line(kind.name(), results)?;
    }
    let total = step.tally.total()?;
    if step.tally.kinds.len() != 1 {
        line("all", &total)?;
    }
    let (cpu, memory) = (optional(step.cpu_ms(&total), ms), optional(step.megabytes(), rate));
    writeln!(text, "server: {cpu} ms of processor time a request, {memory} MB at the end")?;
    Ok(())
}

/// A line for each step.
fn table(text: &mut String, steps: &[Step]) -> Result<()> {
    writeln!(
        text,
        "{:>7} {:>7} {:>8} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>5}",
        "clients", "due/s", "requests", "errors", "/s", "p50 ms", "p99", "p99.9", "max", "CPU ms", "MB"
    )?;
    for step in steps {
        let total = step.tally.total()?;
        let (due, answered) = (optional(step.rate, rate), total.answered());
        let achieved = rate(answered as f64 / step.seconds);
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| ms(total.quantile_ms(quantile)));
        let (cpu, memory) = (optional(step.cpu_ms(&total), ms), optional(step.megabytes(), rate));
        writeln!(
            text,
            "{:>7} {due:>7} {answered:>8} {:>6} {achieved:>7} {p50:>6} {p99:>6} {p999:>6} {:>6} {cpu:>6} {memory:>5}",
            step.clients,
            total.failed(),
            ms(total.max_ms()),
        )?;
    }
    Ok(())
}

/// What the tables have no room for: added documents and errors.
fn notes(text: &mut String, step: &Step, names_step: bool) -> Result<()> {
    let step_name = match (names_step, step.rate) {
        (false, _) => String::new(),
        (true, None) => format!("{}: ", plural(step.clients as u64, "client")),
        (true, Some(due)) => {
            format!("{}, {} due/s: ", plural(step.clients as u64, "client"), rate(due))
        }
    };
    if let Some(Ingestion { ended, seconds }) = step.ingestion {
        let Ended { done, failed } = ended;
        writeln!(
            text,
            "{step_name}{} searchable after {seconds:.1} s, {} a second",
            plural(done, "document"),
            rate(done as f64 / seconds)
        )?;
        if failed > 0 {
            writeln!(text, "{step_name}{} could not be added", plural(failed, "document"))?;
        }
    }
    let meant_to_hit = |kind: &Kind| matches!(kind, Kind::Cached);
    for (kind, results) in step.tally.kinds.iter().filter(|(kind, _)| !meant_to_hit(kind)) {
        // A few are those of queries that are also sent as cached ones.
        if results.hits * 100 > results.answered() {
            writeln!(text, "{step_name}{} hits of {kind}: queries have too few words", results.hits)?;
        }
    }
    for (code, Failures { count, message }) in &step.tally.total()?.errors {
        let first = if message.is_empty() { String::new() } else { format!(", first: {message}") };
        writeln!(text, "{step_name}error {code}: {count}{first}")?;
    }
    Ok(())
}

/// The results with all percentiles.
pub(super) fn json(steps: &[Step]) -> Result<Value> {
    let steps: Result<Vec<Value>> = steps.iter().map(step_json).collect();
    Ok(json!({ "steps": steps? }))
}

fn step_json(step: &Step) -> Result<Value> {
    let total = step.tally.total()?;
    let kinds: serde_json::Map<String, Value> = step
        .tally
        .kinds
        .iter()
        .map(|(kind, results)| (kind.name().to_owned(), results_json(results, step.seconds)))
        .collect();
    let ingestion = step.ingestion.map(|Ingestion { ended, seconds }| {
        json!({ "done": ended.done, "failed": ended.failed, "seconds": seconds })
    });
    Ok(json!({
        "clients": step.clients,
        "due_per_second": step.rate,
        "seconds": step.seconds,
        "cpu_ms_per_request": step.cpu_ms(&total),
        "memory_bytes": step.memory_bytes,
        "ingestion": ingestion,
        "all": results_json(&total, step.seconds),
        "kinds": kinds,
    }))
}

fn results_json(results: &Results, seconds: f64) -> Value {
    let distribution: Vec<Value> = results
        .distribution()
        .map(|(quantile, ms, requests)| json!({ "quantile": quantile, "ms": ms, "requests": requests }))
        .collect();
    let errors: serde_json::Map<String, Value> =
        results.errors.iter().map(|(code, failures)| (code.clone(), failures.count.into())).collect();
    json!({
        "requests": results.answered(),
        "per_second": results.answered() as f64 / seconds,
        "hits": results.hits,
        "errors": errors,
        "mean_ms": results.mean_ms(),
        "p50_ms": results.quantile_ms(0.5),
        "p90_ms": results.quantile_ms(0.9),
        "p99_ms": results.quantile_ms(0.99),
        "p99_9_ms": results.quantile_ms(0.999),
        "max_ms": results.max_ms(),
        "distribution": distribution,
    })
}

/// A number of milliseconds in at most six characters, up to a quarter of an hour.
fn ms(ms: f64) -> String {
    match ms {
        ms if ms < 9.9995 => format!("{ms:.3}"),
        ms if ms < 99.995 => format!("{ms:.2}"),
        ms if ms < 999.95 => format!("{ms:.1}"),
        ms => format!("{ms:.0}"),
    }
}

/// A rate or a size in few characters.
fn rate(value: f64) -> String {
    if value < 99.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn optional(value: Option<f64>, format: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), format)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::load::tally::{Answered, Failure};

    fn failure(code: &str) -> Failure {
        Failure { code: code.to_owned(), message: "full".to_owned() }
    }

    fn step(clients: usize, rate: Option<f64>) -> Step {
        let mut tally = Tally::default();
        for kind in [Kind::Filtered, Kind::Add] {
            for n in 1..=1_000_u64 {
                let latency = Duration::from_micros(n * n * 100);
                tally.record(kind, latency, Ok(Answered { is_hit: kind == Kind::Filtered })).unwrap();
            }
        }
        tally.record(Kind::Add, Duration::ZERO, Err(failure("1010"))).unwrap();
        tally.unsent = 99_998;
        let (cpu_seconds, memory_bytes) = (Some(2.0), Some(1.2e10));
        let ended = Ended { done: 999, failed: 1 };
        let ingestion = Some(Ingestion { ended, seconds: 4.0 });
        Step { clients, rate, seconds: 10.0, tally, cpu_seconds, memory_bytes, ingestion }
    }

    fn assert_narrow(text: &str) {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn one_step_has_a_line_for_each_kind() {
        let text = text(&[step(64, None)]).unwrap();
        assert_narrow(&text);
        let lines: Vec<&str> = text.lines().collect();
        let fields = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let filtered = lines.iter().find(|line| line.starts_with("filtered")).unwrap();
        assert_eq!(fields(filtered).get(..5).unwrap(), ["filtered", "1000", "0", "100", "100%"], "{text}");
        let all = lines.iter().find(|line| line.starts_with("all")).unwrap();
        assert_eq!(fields(all).get(..5).unwrap(), ["all", "2000", "99999", "200", "50%"], "{text}");
        for line in [
            "server: 1.000 ms of processor time a request, 12000 MB at the end",
            "999 documents searchable after 4.0 s, 250 a second",
            "1 document could not be added",
            "1000 hits of filtered: queries have too few words",
            "error add 1010: 1, first: full",
            "error not sent: 99998",
        ] {
            assert!(lines.contains(&line), "{line} is not in {text}");
        }
    }

    #[test]
    fn several_steps_have_a_line_each() {
        let steps = [step(1, None), step(1_024, Some(50_000.0))];
        let text = text(&steps).unwrap();
        assert_narrow(&text);
        assert_eq!(text.lines().filter(|line| line.contains("2000")).count(), 2, "{text}");
        assert!(text.contains("\n1 client: error add 1010: 1, first: full\n"), "{text}");
        assert!(text.contains("1024 clients, 50000 due/s: error not sent: 99998\n"), "{text}");
        assert_eq!(steps[0].failed().unwrap(), 100_000);
    }

    #[test]
    fn processor_time_is_shared_by_failed_requests_and_not_by_those_that_were_not_sent() {
        let mut tally = Tally::default();
        for _ in 0..4 {
            tally.record(Kind::Search, Duration::ZERO, Err(failure("1004"))).unwrap();
        }
        tally.unsent = 9;
        let refused = Step { tally, ..step(1, None) };
        assert!(text(&[refused]).unwrap().contains("server: 500.0 ms of processor time a request"));
    }

    #[test]
    fn server_without_metrics_has_dashes() {
        let unknown = Step { cpu_seconds: None, memory_bytes: None, ..step(1, None) };
        assert!(text(&[unknown]).unwrap().contains("server: - ms of processor time a request, - MB"));
    }

    #[test]
    fn json_has_the_whole_distribution() {
        let json = json(&[step(8, Some(100.0))]).unwrap();
        let results = &json["steps"][0]["kinds"]["add"];
        assert_eq!((&results["requests"], &results["errors"]["1010"]), (&1_000.into(), &1.into()));
        let distribution = results["distribution"].as_array().unwrap();
        assert!(distribution.len() > 20, "{results}");
        assert_eq!(distribution.last().unwrap()["requests"], 1_000);
        assert_eq!(json["steps"][0]["due_per_second"], 100.0);
    }
}

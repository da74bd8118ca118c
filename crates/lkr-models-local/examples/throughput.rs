//! Measures an embedder: `throughput MODEL_DIR TEXT_FILE [LINES [PRECISION [THREADS [VECTORS]]]]`.
//!
//! Each line of the file is a passage; the first words of the lines are the queries. CPU time is the process's own. The
//! vectors of the passages are written to the file `VECTORS`, as 32-bit floats.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use anyhow::{Context, Result};
use lkr_models::{EmbedKind, Embedder, Precision};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use rustix::time::{ClockId, clock_gettime};

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [dir, file, rest @ ..] = args.as_slice() else {
        anyhow::bail!("usage: throughput MODEL_DIR TEXT_FILE [LINES [PRECISION [THREADS [VECTORS]]]]")
    };
    let lines: usize = rest.first().map_or(Ok(256), |lines| lines.parse())?;
    let precision = rest.get(1).map_or(Ok(Precision::default()), |name| name.parse());
    let precision = precision.map_err(anyhow::Error::msg)?;
    let mut options = LocalOptions { precision, ..LocalOptions::default() };
    if let Some(threads) = rest.get(2) {
        (options.passage_threads, options.query_threads) = (threads.parse()?, threads.parse()?);
    }
    let started = Instant::now();
    let embedder = LocalEmbedder::open(Path::new(dir), options)?;
    say(format_args!("opened in {:.0} ms: {:?}", millis(started.elapsed()), embedder.profile()));

    let text = fs::read_to_string(file)?;
    let passages: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).take(lines).map(Into::into).collect();
    let queries: Vec<String> =
        passages.iter().map(|line| line.split_whitespace().take(8).collect::<Vec<_>>().join(" ")).collect();
    measure_passages(&embedder, &passages).await?;
    for _ in 0..3 {
        measure_queries(&embedder, queries.get(..64.min(queries.len())).unwrap_or_default()).await?;
    }
    if let Some(file) = rest.get(3) {
        let vectors = embedder.embed(EmbedKind::Passage, &passages).await?;
        let bytes: Vec<u8> = vectors.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
        fs::write(file, bytes)?;
    }
    say(format_args!("anonymous memory {}", status("RssAnon:")?));
    Ok(())
}

async fn measure_passages(embedder: &LocalEmbedder, passages: &[String]) -> Result<()> {
    embedder.embed(EmbedKind::Passage, passages.get(..1).unwrap_or_default()).await?;
    for _ in 0..3 {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        for batch in passages.chunks(64) {
            embedder.embed(EmbedKind::Passage, batch).await?;
        }
        let (count, cpu) = (passages.len() as f64, cpu_seconds() - cpu);
        let wall = wall.elapsed().as_secs_f64();
        say(format_args!("passages: {:.1} per CPU second, {:.1} per second", count / cpu, count / wall));
    }
    Ok(())
}

async fn measure_queries(embedder: &LocalEmbedder, queries: &[String]) -> Result<()> {
    let cpu = cpu_seconds();
    let mut times = Vec::new();
    for query in queries {
        let started = Instant::now();
        embedder.embed(EmbedKind::Query, std::slice::from_ref(query)).await?;
        times.push(started.elapsed());
    }
    times.sort();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let each = (cpu_seconds() - cpu) * 1e3 / queries.len().max(1) as f64;
    say(format_args!("queries: {:.2} ms median, {each:.2} ms of CPU each", millis(median)));
    Ok(())
}

/// The seconds of CPU that this process has used.
fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

fn status(key: &str) -> Result<String> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(key)).context("no such line in status")?;
    Ok(line.trim().to_owned())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[expect(clippy::print_stdout, reason = "an example answers on standard output")]
fn say(line: std::fmt::Arguments<'_>) {
    println!("{line}");
}

//! How searches, ingestion and space change as a knowledge base grows.

use std::{
    collections::HashSet,
    fmt, fs,
    io::Write,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use lkr::{Mode, PointId, SearchOptions, SearchRequest, ports::Embedder};
use lkr_store_lmdb::LmdbOptions;

use crate::{
    bench::{
        copies::{Copies, CopyEmbedder},
        disk,
        growing_base::{GrowingBase, WARM_UP_QUERIES, chunks_of, grow},
        idle::{cpu_time, wait_until_background_work_is_done},
        page_cache::forget_pages,
        search::{self, SearchCost},
    },
    collection::Query,
    import::{import_missing, sources},
    local_kb::{LocalKnowledgeBase, require_sources},
    stats::{Latency, mean, millis},
};

/// The results whose recall is measured.
const TOP_K: usize = 10;

/// What was measured at a size.
#[derive(Debug)]
struct SizeReport {
    chunks: u64,
    queries: usize,
    /// How this size was reached, without embedding.
    copied: Ingestion,
    /// Another copy of all documents, embedded; and that at the first size.
    embedded: Ingestion,
    first_embedded: Ingestion,
    /// From opening the folder to the first answer.
    ready: Duration,
    /// The same if nothing of the folder is in memory; `None` if the system cannot take it out of there.
    cold: Option<Duration>,
    /// The latency of a search, and that at the first size.
    latency: Latency,
    first: Latency,
    /// The processor time of a search, in milliseconds.
    cpu_ms: f64,
    /// Searches beside their legs alone.
    beside_legs: SearchCost,
    /// The share of the first results of exact searches that were found.
    recall: f64,
    disk: u64,
    /// Anonymous memory after the searches; 0 if the system does not tell.
    memory: u64,
}

/// Chunks that were ingested, and the time of that, by the clock and of the processor, background work included.
#[derive(Debug, Clone, Copy)]
struct Ingestion {
    chunks: u64,
    wall: Duration,
    cpu: Duration,
}

impl Ingestion {
    /// Measures what `ingest` adds.
    async fn of<T>(local_kb: &LocalKnowledgeBase, ingest: impl Future<Output = Result<T>>) -> Result<Self> {
        wait_until_background_work_is_done().await;
        let before = chunks_of(local_kb).await?;
        let started = (Instant::now(), cpu_time().unwrap_or_default());
        ingest.await?;
        let ended = wait_until_background_work_is_done().await;
        let wall = ended.saturating_duration_since(started.0);
        let cpu = cpu_time().unwrap_or_default().saturating_sub(started.1);
        Ok(Self { chunks: chunks_of(local_kb).await? - before, wall, cpu })
    }

    /// Chunks a second, by the clock and of the processor.
    fn rates(&self) -> [f64; 2] {
        [self.wall, self.cpu].map(|time| self.chunks as f64 / time.as_secs_f64().max(1e-9))
    }
}

/// The chunks of an answer.
type Found = HashSet<PointId>;

/// The answers to all queries, and what they cost.
struct Searches {
    ready: Duration,
    took: Vec<Duration>,
    cpu: Duration,
    found: Vec<Found>,
    memory: u64,
}

/// Measures at each size and lets the knowledge base grow in between. Writes what was measured after each size, because the
/// larger ones take long.
pub(super) async fn measure(args: &GrowingBase, mut to: impl Write) -> Result<()> {
    let (copies, queries) = args.read()?;
    let embedder = args.material.embedder()?;
    let copying: Arc<dyn Embedder> = Arc::new(CopyEmbedder::new(Arc::clone(&embedder)));
    let open_with = |embedder: &Arc<dyn Embedder>, options: LmdbOptions| {
        LocalKnowledgeBase::open_with(&args.data_dir, Some(Arc::clone(embedder)), options)
    };
    let open = |options: LmdbOptions| open_with(&copying, options);
    require_sources(&args.data_dir, copies.sources()).await?;
    let mut first = None;
    for &size in &args.chunks {
        let local_kb = open(LmdbOptions::default()).await?;
        // The documents and their first copies, whose titles are not those of their texts, are embedded. What is measured is
        // the rest.
        let mut stored = sources(&local_kb.kb).await?;
        for n in 0..2 {
            import_missing(&local_kb.kb, copies.missing(n, &stored), &mut stored).await?;
        }
        let copied = Ingestion::of(&local_kb, grow(&local_kb, &copies, size, &mut stored)).await?;
        let chunks = chunks_of(&local_kb).await?;
        local_kb.close().await;

        let cold = match forget_pages(&args.data_dir)? {
            true => {
                let began = Instant::now();
                let opened = open(LmdbOptions::default()).await?;
                Some(search_all(opened, began, queries.get(..1).unwrap_or_default()).await?.ready)
            }
            false => None,
        };
        let began = Instant::now();
        let searches = search_all(open(LmdbOptions::default()).await?, began, &queries).await?;
        let mut exact = LmdbOptions::default();
        exact.codes_below = u64::MAX;
        let exact = search_all(open(exact).await?, Instant::now(), &queries).await?;
        let with_legs = open(LmdbOptions::default()).await?;
        let beside_legs = search::measure(&with_legs, &queries).await?;
        with_legs.close().await;
        let disk = disk::parts(&args.data_dir)?.iter().sum();
        let local_kb = open_with(&embedder, LmdbOptions::default()).await?;
        let embedded = Ingestion::of(&local_kb, import_next_copy(&local_kb, &copies, &mut stored)).await?;
        local_kb.close().await;

        let latency = Latency::of(searches.took);
        let (first, first_embedded) = *first.get_or_insert((latency, embedded));
        let report = SizeReport {
            chunks,
            queries: queries.len(),
            copied,
            embedded,
            first_embedded,
            ready: searches.ready,
            cold,
            cpu_ms: millis(searches.cpu) / queries.len().max(1) as f64,
            beside_legs,
            recall: recall(&searches.found, &exact.found),
            first,
            latency,
            disk,
            memory: searches.memory,
        };
        write!(to, "{report}")?;
        to.flush()?;
    }
    Ok(())
}

/// Ingests the first copy of all documents that is not stored yet.
async fn import_next_copy(
    local_kb: &LocalKnowledgeBase,
    copies: &Copies,
    stored: &mut HashSet<String>,
) -> Result<()> {
    let mut n = 0;
    while import_missing(&local_kb.kb, copies.missing(n, stored), stored).await? == 0 {
        n += 1;
    }
    Ok(())
}

/// Runs all queries, and closes the knowledge base, which was opened since `began`.
async fn search_all(local_kb: LocalKnowledgeBase, began: Instant, queries: &[Query]) -> Result<Searches> {
    let searcher = local_kb.searcher(SearchOptions::default());
    let request = |query: &Query| SearchRequest {
        mode: Mode::Layered,
        top_k: TOP_K,
        ..SearchRequest::new(query.text.as_str())
    };
    let mut ready = None;
    for query in queries.iter().take(WARM_UP_QUERIES) {
        searcher.search(&request(query)).await?;
        ready.get_or_insert_with(|| began.elapsed());
    }
    wait_until_background_work_is_done().await;
    let (mut took, mut found) = (Vec::new(), Vec::new());
    let cpu = cpu_time().unwrap_or_default();
    for query in queries {
        let started = Instant::now();
        let outcome = searcher.search(&request(query)).await?;
        took.push(started.elapsed());
        let results = outcome.response.results.iter();
        found.push(results.map(|result| result.chunk_id).collect());
    }
    let cpu = cpu_time().unwrap_or_default().saturating_sub(cpu);
    let memory = anonymous_memory().unwrap_or_default();
    drop(searcher);
    local_kb.close().await;
    Ok(Searches { ready: ready.unwrap_or_default(), took, cpu, found, memory })
}

/// The mean share of the exact results that were found.
fn recall(found: &[Found], exact: &[Found]) -> f64 {
    let shares = found.iter().zip(exact).filter(|(_, exact)| !exact.is_empty());
    mean(shares.map(|(found, exact)| found.intersection(exact).count() as f64 / exact.len() as f64))
}

/// The anonymous resident memory of this process, in bytes. `None` if the system does not report it.
fn anonymous_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

impl fmt::Display for SizeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            chunks,
            queries,
            copied,
            embedded,
            first_embedded,
            ready,
            cold,
            latency,
            first,
            cpu_ms,
            beside_legs,
            recall,
            disk,
            memory,
        } = self;
        writeln!(f, "{chunks} chunks, {queries} queries")?;
        if copied.chunks > 0 {
            let [wall, cpu] = copied.rates();
            writeln!(f, "  copies    {wall:.0} chunks a second, {cpu:.0} a CPU second, without embedding")?;
        }
        let ([wall, cpu], [first_wall, first_cpu]) = (embedded.rates(), first_embedded.rates());
        writeln!(
            f,
            "  ingestion {wall:.0} chunks a second ({:.2} times), {cpu:.0} a CPU second ({:.2} times)",
            wall / first_wall,
            cpu / first_cpu
        )?;
        write!(f, "  ready     {:.0} ms, with the first answer", millis(*ready))?;
        match cold {
            Some(cold) => writeln!(f, ", {:.0} if nothing of the folder is in memory", millis(*cold))?,
            None => writeln!(f)?,
        }
        writeln!(
            f,
            "  searches  {:.2} ms p50 ({:.2} times), {:.2} p99 ({:.2} times), {cpu_ms:.2} of the processor",
            latency.p50_ms,
            latency.p50_ms / first.p50_ms,
            latency.p99_ms,
            latency.p99_ms / first.p99_ms
        )?;
        writeln!(f, "  by legs   {beside_legs}")?;
        writeln!(f, "  recall    {recall:.4} of the first {TOP_K} results of exact searches")?;
        let per_chunk = *disk as f64 / 1e3 / (*chunks).max(1) as f64;
        writeln!(f, "  space     {per_chunk:.2} kB a chunk, {:.0} MB of memory", *memory as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_the_mean_share_of_exact_results() {
        let of =
            |chunks: &[u8]| chunks.iter().map(|chunk| PointId::from_bytes([*chunk; 16])).collect::<Found>();
        let found = [of(&[1, 2, 3, 4]), of(&[5, 7]), of(&[1])];
        let exact = [of(&[1, 2, 3, 9]), of(&[5, 6]), of(&[])];
        assert_eq!(recall(&found, &exact), 0.625);
        assert_eq!(recall(&exact, &exact), 1.0);
    }
}

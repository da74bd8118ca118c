use std::{num::NonZeroUsize, thread};

/// How a store behaves. The defaults suit a machine that serves searches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LmdbOptions {
    /// The address space for each of the two environments, in bytes; the default is 1 TiB. It is virtual and uses
    /// neither memory nor disk. If the system refuses it, it is halved repeatedly, down to 1 GiB.
    pub map_size: usize,
    /// A collection of up to this many points has no graph: a dense query scans all of them, exactly. Their vectors are
    /// kept in memory for it, quantised, with their origins: one byte a dimension and 120 more. See docs/studies.md#quantised-vectors.
    pub codes_below: u64,
    /// Up to this many candidates in a larger collection, a dense query scans all of them, which takes about as long as
    /// a graph search. See docs/studies.md#dense-graph.
    pub linear_below: u64,
    /// A graph search gets slower with fewer candidates, a scan with more. Above
    /// [`linear_below`](Self::linear_below), the graph is searched if the square of the number of candidates exceeds
    /// this value times the points in the graph. See docs/studies.md#dense-graph.
    pub break_even: u64,
    /// The number of candidates that a graph search keeps: recall for time. It is at least twice a query's limit. See
    /// docs/studies.md#dense-graph.
    pub ef_search: usize,
    /// The number of candidates that inserting a vector into the graph keeps. See docs/studies.md#dense-graph.
    pub ef_construction: usize,
    /// The fewest new vectors that start a build of the graph; fewer are scanned. Larger collections wait for a
    /// hundredth of their size.
    pub graph_batch: u32,
    /// The space that deleted data leaves is kept for later writes up to this many bytes, or up to an eighth of the data
    /// if that is more. What is beyond is given back to the file system, on Linux. See docs/studies.md#giving-pages-back.
    pub spare_bytes: u64,
    /// The number of threads that build graphs. With 0 there are no graphs, expired rows are not removed and no
    /// space is given back: for stores that are only read.
    pub build_threads: usize,
    /// The number of threads that run one batch of queries.
    pub search_threads: usize,
}

impl Default for LmdbOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            map_size: 1 << 40,
            codes_below: 60_000,
            linear_below: 15_000,
            break_even: 10_000,
            ef_search: 200,
            ef_construction: 100,
            graph_batch: 1_000,
            spare_bytes: 1 << 20,
            build_threads: (cores / 4).clamp(1, 4),
            search_threads: cores.clamp(1, 4),
        }
    }
}

use std::{num::NonZeroUsize, thread};

/// How a store behaves. The defaults suit a machine that serves searches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LmdbOptions {
    /// The address space for each of the two environments, in bytes; the default is 1 TiB. It is virtual: neither
    /// memory nor disk is taken for it. Halved until the system grants it, down to 1 GiB.
    pub map_size: usize,
    /// Among so many candidates or fewer a dense query looks at each of them: about as many as take the time of a walk.
    /// A collection of no more points has no graph.
    pub linear_below: u64,
    /// Walking the graph takes the longer the fewer of its points are candidates, looking at each the longer the
    /// more there are. Above [`linear_below`](Self::linear_below), the graph is walked where the square of the
    /// number of candidates is more than so many times the points in the graph.
    pub break_even: u64,
    /// How many candidates a walk of the graph keeps: recall for time. It is at least twice a query's limit.
    pub ef_search: usize,
    /// How many candidates the insertion of a vector into the graph keeps.
    pub ef_construction: usize,
    /// The fewest vectors that are worth a build of the graph; fewer are scanned. A larger collection waits for a
    /// hundredth of its size.
    pub graph_batch: u32,
    /// How many threads build graphs. With none there are no graphs, nor is removed what has expired: for a store that
    /// is only looked at.
    pub build_threads: usize,
    /// How many threads answer one batch of queries.
    pub search_threads: usize,
}

impl Default for LmdbOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            map_size: 1 << 40,
            linear_below: 15_000,
            break_even: 10_000,
            ef_search: 200,
            ef_construction: 100,
            graph_batch: 1_000,
            build_threads: (cores / 4).clamp(1, 4),
            search_threads: cores.clamp(1, 4),
        }
    }
}

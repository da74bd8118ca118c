use std::{num::NonZeroUsize, thread};

use crate::{env::Map, memory_limit::memory_limit};

/// How a store behaves. The defaults suit a machine that serves searches.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LmdbOptions {
    /// The address space for each of the two environments, in bytes; the default is 1 TiB. It is virtual and uses
    /// neither memory nor disk. If the system refuses it, it is halved repeatedly, down to 1 GiB.
    pub map_size: usize,
    /// Of a data file of up to this many bytes when it is opened, the system reads more than is asked for, so that all of it is
    /// soon in memory. Of a larger one that would take the place of what other searches need, and it reads single pages. The
    /// default is half of the memory that the process may use. See docs/studies.md#reading-ahead.
    pub read_ahead_below: u64,
    /// A collection of up to this many points has no clusters: a dense query scans all of them, exactly. Their vectors are
    /// kept in memory for it, quantised: one byte a dimension. See docs/studies.md#quantised-vectors.
    pub codes_below: u64,
    /// Of a collection of up to this many points, queries keep the ids and origins in memory, 120 bytes a point.
    pub origins_below: u64,
    /// Up to this many candidates in a larger collection, a dense query scans all of them, exactly. See
    /// docs/studies.md#clusters.
    pub linear_below: u64,
    /// How much of larger collections a dense query scans: clusters with this many times the square root of the candidates,
    /// the nearest first. More costs time and finds more of the nearest points. See docs/studies.md#clusters.
    pub probe: u64,
    /// The fewest new vectors that are added to clusters; fewer are scanned. Larger collections wait for a two-hundredth of
    /// their size. Once nothing was written for ten seconds, a quarter and a two-thousandth are enough.
    pub cluster_batch: u32,
    /// The space that deleted data leaves is kept for later writes up to this many bytes, or up to a sixteenth of the data
    /// or 128 MiB, whichever is less, if that is more. What is beyond is given back to the file system, on Linux. See
    /// docs/studies.md#giving-pages-back.
    pub spare_bytes: u64,
    /// The number of threads that find the clusters of points. With 0 there are no clusters, expired rows are not removed and
    /// no space is given back: for stores that are only read.
    pub build_threads: usize,
    /// The number of threads that run one batch of queries.
    pub search_threads: usize,
    /// Queries that begin before the others of their batch are known are run by one thread, if their collections have fewer points
    /// than this together. See docs/studies.md#begun-batches.
    pub begun_alone_below: u64,
}

impl Default for LmdbOptions {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            map_size: 1 << 40,
            read_ahead_below: memory_limit().map_or(u64::MAX, |limit| limit / 2),
            codes_below: 40_000,
            origins_below: 60_000,
            linear_below: 15_000,
            probe: 32,
            cluster_batch: 1_000,
            spare_bytes: 1 << 20,
            build_threads: (cores / 4).clamp(1, 4),
            search_threads: cores.clamp(1, 4),
            begun_alone_below: 400_000,
        }
    }
}

impl LmdbOptions {
    /// How its data files are mapped.
    pub(crate) const fn map(&self) -> Map {
        Map { size: self.map_size, read_ahead_below: self.read_ahead_below }
    }
}

//! Centroids of clusters: spherical k-means on a sample.

use std::thread;

use super::WITHOUT_DIRECTION;
use crate::vectors::{Quantised, QuantisedQuery, QuantisedRow};

/// How often points are assigned to centroids and centroids moved. See docs/studies.md#clusters.
const ITERATIONS: usize = 6;
/// How many points of the sample there are for each centroid.
const SAMPLE_PER_CLUSTER: u64 = 32;
/// The most clusters: scanning the centroids must stay cheap beside scanning clusters.
const MOST_CLUSTERS: u64 = 8_192;

/// How many clusters suit a collection of this many points: twice its square root, so that scanning the centroids costs a
/// small part of a query.
pub(super) fn clusters_of(points: u64) -> usize {
    (2 * points.isqrt()).clamp(1, MOST_CLUSTERS) as usize
}

/// How many points the centroids of so many clusters are made from.
pub(super) const fn sample_of(clusters: usize) -> u64 {
    clusters as u64 * SAMPLE_PER_CLUSTER
}

/// The directions that clusters are around.
pub(super) struct Centroids {
    dims: usize,
    /// Encoded rows, whose ids are the numbers of the clusters.
    rows: Vec<u8>,
}

impl Centroids {
    pub(super) fn of_rows<'r>(rows: impl Iterator<Item = QuantisedRow<'r>>, dims: usize) -> Self {
        let mut encoded = Vec::new();
        rows.for_each(|row| row.encode(&mut encoded));
        Self { dims, rows: encoded }
    }

    /// Makes centroids from a sample of encoded rows, on so many threads. `None` if `stopped` says so.
    pub(super) fn train(
        sample: &[u8],
        (dims, clusters): (usize, usize),
        threads: usize,
        stopped: impl Fn() -> bool,
    ) -> Option<Self> {
        let members: Vec<QuantisedRow> = QuantisedRow::all(sample, dims)?.collect();
        let clusters = clusters.min(members.len());
        let first =
            (0..clusters).filter_map(|cluster| members.get(cluster * members.len() / clusters.max(1)));
        let mut centroids = Self::of_rows(first.zip(0..).map(|(row, id)| QuantisedRow { id, ..*row }), dims);
        for _ in 0..ITERATIONS {
            if stopped() {
                return None;
            }
            let assigned = centroids.assign(&members, threads);
            centroids = centroids.moved(&members, &assigned);
        }
        Some(centroids)
    }

    /// The rows, as they are stored.
    pub(super) fn rows(&self) -> &[u8] {
        &self.rows
    }

    /// The nearest cluster of each point, on so many threads.
    pub(super) fn assign(&self, points: &[QuantisedRow], threads: usize) -> Vec<u32> {
        let assign = |points: &[QuantisedRow]| points.iter().map(|point| self.nearest(point)).collect();
        if threads < 2 {
            return assign(points);
        }
        let part = points.len().div_ceil(threads).max(1);
        thread::scope(|scope| {
            let running: Vec<_> = points
                .chunks(part)
                .map(|points| scope.spawn(move || -> Vec<u32> { assign(points) }))
                .collect();
            // A panic goes on to the caller, who catches it.
            running
                .into_iter()
                .flat_map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        })
    }

    fn nearest(&self, point: &QuantisedRow) -> u32 {
        let Some(query) = QuantisedQuery::of_row(point) else { return WITHOUT_DIRECTION };
        let centroids = QuantisedRow::all(&self.rows, self.dims).into_iter().flatten();
        let nearest = centroids.map(|row| (query.cosine(&row), row.id)).max_by(|a, b| a.0.total_cmp(&b.0));
        nearest.map_or(WITHOUT_DIRECTION, |(_, cluster)| cluster)
    }

    /// Each centroid as the mean direction of its points; one without points stays where it is.
    fn moved(&self, points: &[QuantisedRow], assigned: &[u32]) -> Self {
        let centroids: Vec<QuantisedRow> =
            QuantisedRow::all(&self.rows, self.dims).into_iter().flatten().collect();
        let mut sums = vec![vec![0.0_f32; self.dims]; centroids.len()];
        for (point, cluster) in points.iter().zip(assigned) {
            if let Some(sum) = sums.get_mut(*cluster as usize) {
                sum.iter_mut().zip(point.values()).for_each(|(sum, value)| *sum += value);
            }
        }
        let mut rows = Vec::with_capacity(self.rows.len());
        for (centroid, sum) in centroids.iter().zip(sums) {
            match Quantised::of(&sum).filter(|moved| moved.row(0).has_direction()) {
                Some(moved) => moved.row(centroid.id).encode(&mut rows),
                None => centroid.encode(&mut rows),
            }
        }
        Self { dims: self.dims, rows }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DIMS: usize = 32;

    /// A direction near that of one axis; `n` varies it.
    fn near(axis: usize, n: u32) -> Vec<f32> {
        (0..DIMS).map(|at| if at == axis { 1.0 } else { (n as f32 * (at + 1) as f32).sin() * 0.1 }).collect()
    }

    fn encoded(vectors: &[Vec<f32>]) -> Vec<u8> {
        let mut rows = Vec::new();
        vectors
            .iter()
            .zip(0..)
            .for_each(|(vector, id)| Quantised::of(vector).unwrap().row(id).encode(&mut rows));
        rows
    }

    #[test]
    fn points_around_one_direction_are_one_cluster() {
        let vectors: Vec<Vec<f32>> = (0..200).map(|n| near(n as usize / 50, n)).collect();
        let sample = encoded(&vectors);
        let points: Vec<QuantisedRow> = QuantisedRow::all(&sample, DIMS).unwrap().collect();
        for threads in [1, 3] {
            let centroids = Centroids::train(&sample, (DIMS, 4), threads, || false).unwrap();
            let clusters = centroids.assign(&points, threads);
            for (n, cluster) in clusters.iter().enumerate() {
                assert_eq!(*cluster, clusters[n / 50 * 50], "point {n}");
            }
            assert_eq!(clusters.into_iter().collect::<BTreeSet<u32>>().len(), 4);
        }
        assert!(Centroids::train(&sample, (DIMS, 4), 1, || true).is_none(), "stopped");
    }

    #[test]
    fn point_without_a_direction_has_a_cluster_of_its_own() {
        let sample = encoded(&[near(0, 1), near(1, 2)]);
        let centroids = Centroids::train(&sample, (DIMS, 9), 1, || false).unwrap();
        let points = [
            Quantised::of(&[0.0; DIMS]).unwrap(),
            Quantised::anywhere(DIMS),
            Quantised::of(&near(1, 5)).unwrap(),
        ];
        let points: Vec<QuantisedRow> = points.iter().map(|point| point.row(0)).collect();
        assert_eq!(centroids.assign(&points, 2), [WITHOUT_DIRECTION, WITHOUT_DIRECTION, 1]);
        let none = Centroids::train(&[], (DIMS, 9), 1, || false).unwrap();
        assert_eq!(none.assign(&points, 1), [WITHOUT_DIRECTION; 3]);
    }
}

//! Measures dense queries: `recall VECTORS DIMS [POINTS] [QUERIES]`.
//!
//! `VECTORS` and `QUERIES` are files of little-endian `f32`, `DIMS` for each vector. They should be embeddings of real
//! texts: clusters behave differently on random vectors. If there are fewer vectors than `POINTS` (by default
//! 100,000), jittered copies are added. Without `QUERIES`, jittered vectors are the queries. The recall of the first 100
//! hits is measured against all cosines in memory, before and after half of the points are deleted and as many added.

use std::{env, fs, path::Path, time::Instant};

use lkr_domain::{DocId, PointId, Scope, SparseVector};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, LmdbVectors};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, DenseSpec, Filter, Point, PointOrigin, Query, QueryVector, Tags,
    VectorStore,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

type Error = Box<dyn std::error::Error>;

const LIMIT: usize = 100;
const QUERY_COUNT: usize = 200;
/// The noise of each dimension of a copy: its cosine with the original is about .96.
const JITTER: f32 = 0.015;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [vectors, dims, rest @ ..] = args.as_slice() else {
        return Err("usage: recall VECTORS DIMS [POINTS] [QUERIES]".into());
    };
    let dims: usize = dims.parse()?;
    let count: usize = rest.first().map_or(Ok(100_000), |count| count.parse())?;
    let mut rng = StdRng::seed_from_u64(7);
    let real = read(vectors, dims)?;
    let queries = match rest.get(1) {
        Some(file) => read(file, dims)?,
        None => real.iter().take(QUERY_COUNT).map(|vector| jittered(vector, &mut rng)).collect(),
    };
    print_line(&format!(
        "{} real vectors of {dims} dimensions, {count} points, {} queries",
        real.len(),
        queries.len().min(QUERY_COUNT)
    ));
    let folder = tempfile::tempdir()?;
    let mut bench = Bench::open(folder.path(), dims, real, rng).await?;
    bench.add(count).await?;
    bench.build(folder.path()).await?;
    bench.report("as built", &queries).await?;
    bench.delete_half().await?;
    bench.add(count / 2).await?;
    bench.report("half deleted, as many added, clusters not updated", &queries).await?;
    bench.build(folder.path()).await?;
    bench.report("half deleted, as many added, clusters updated", &queries).await?;
    Ok(())
}

struct Bench {
    vectors: LmdbVectors,
    name: Collection,
    real: Vec<Vec<f32>>,
    rng: StdRng,
    /// The stored points: number and vector.
    points: Vec<(u32, Vec<f32>)>,
    next: u32,
}

impl Bench {
    async fn open(folder: &Path, dims: usize, real: Vec<Vec<f32>>, rng: StdRng) -> Result<Self, Error> {
        let vectors = LmdbStore::open(folder, LmdbOptions::default())?.vectors();
        let name = Collection::new("recall").ok_or("no name")?;
        let dense = Some(DenseSpec { model: "given".to_owned(), dims });
        vectors.ensure(&CollectionSpec { collection: name.clone(), dense }).await?;
        Ok(Self { vectors, name, real, rng, points: Vec::new(), next: 0 })
    }

    /// Adds points: the real vectors first, then copies.
    async fn add(&mut self, count: usize) -> Result<(), Error> {
        let started = Instant::now();
        let mut left = count;
        while left > 0 {
            let batch: Vec<Point> = (0..left.min(500)).filter_map(|_| self.new_point()).collect();
            left -= batch.len();
            self.vectors.upsert(&self.name, batch).await?;
        }
        let rate = count as f64 / started.elapsed().as_secs_f64();
        print_line(&format!(
            "added {count} points in {:.1} s, {rate:.0} a second",
            started.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    fn new_point(&mut self) -> Option<Point> {
        let n = self.next;
        self.next += 1;
        let real = self.real.get(n as usize % self.real.len())?;
        let vector =
            if (n as usize) < self.real.len() { real.clone() } else { jittered(real, &mut self.rng) };
        self.points.push((n, vector.clone()));
        let origin =
            PointOrigin { doc_id: DocId::from_bytes([0; 16]), revision: 1, ordinal: n, l2: None, l3: None };
        let share = |of: u32| (n % of).to_string();
        let tags = [2, 10, 100].map(|of| (format!("of-{of}"), share(of)));
        Some(Point {
            id: id(n),
            origin,
            tags: Tags::from(tags),
            dense: Some(vector),
            sparse: SparseVector::default(),
            payload: serde_json::Value::Null,
        })
    }

    async fn delete_half(&mut self) -> Result<(), Error> {
        let started = Instant::now();
        let (deleted, remaining): (Vec<_>, Vec<_>) =
            self.points.drain(..).partition(|_| self.rng.random_bool(0.5));
        self.points = remaining;
        for batch in deleted.chunks(500) {
            let ids = batch.iter().map(|(n, _)| id(*n)).collect();
            self.vectors.delete(&self.name, &Filter::only(Condition::Ids(ids))).await?;
        }
        print_line(&format!("deleted {} points in {:.1} s", deleted.len(), started.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Waits until the clusters have not grown for ten seconds.
    async fn build(&self, folder: &Path) -> Result<(), Error> {
        let started = Instant::now();
        let (mut lag, mut unchanged) = (u64::MAX, 0);
        while unchanged < 20 {
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            let now = self.vectors.cluster_lag(&self.name).await?;
            let sealed = fs::read_dir(folder.join("clusters"))?
                .flatten()
                .any(|entry| entry.path().join("seal").exists());
            unchanged = if now == lag && sealed { unchanged + 1 } else { 0 };
            lag = now;
        }
        print_line(&format!(
            "clusters built in {:.0} s, {lag} points left to scan",
            started.elapsed().as_secs_f64() - 10.0
        ));
        Ok(())
    }

    async fn report(&self, state: &str, queries: &[Vec<f32>]) -> Result<(), Error> {
        print_line(&format!("{state}:"));
        for (what, of) in [("all", 1), ("one in two", 2), ("one in ten", 10), ("one in a hundred", 100)] {
            let (mut recall, mut times, mut count) = (0.0, Vec::new(), 0.0);
            for vector in queries.iter().take(QUERY_COUNT) {
                let started = Instant::now();
                let hits = self.search(vector, of).await?;
                times.push(started.elapsed().as_secs_f64() * 1e3);
                let best = self.best(vector, of);
                let found = hits.iter().filter(|id| best.contains(id)).count();
                recall += found as f64 / best.len().max(1) as f64;
                count += 1.0;
            }
            times.sort_by(f64::total_cmp);
            let at =
                |share: f64| times.get((times.len() as f64 * share) as usize).copied().unwrap_or_default();
            let (p50, p95) = (at(0.5), at(0.95));
            print_line(&format!(
                "  {what:17} recall@{LIMIT} {:.4}   p50 {p50:.2} ms   p95 {p95:.2} ms",
                recall / count
            ));
        }
        Ok(())
    }

    async fn search(&self, vector: &[f32], of: u32) -> Result<Vec<u32>, Error> {
        let tag = Condition::Tag { key: format!("of-{of}"), any: vec!["0".to_owned()] };
        let filter = if of == 1 { Filter::all() } else { Filter::only(tag) };
        let vector = QueryVector::Dense(vector.to_vec());
        let query = Query { collection: self.name.clone(), vector, scope: Scope::All, filter, limit: LIMIT };
        let hits = self.vectors.query_batch(&[query]).await?;
        Ok(hits.into_iter().flatten().map(|hit| hit.origin.ordinal).collect())
    }

    /// The exact nearest points.
    fn best(&self, vector: &[f32], of: u32) -> Vec<u32> {
        let passing = self.points.iter().filter(|(n, _)| n % of == 0);
        let mut scored: Vec<(f32, u32)> = passing.map(|(n, point)| (dot(vector, point), *n)).collect();
        scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        scored.into_iter().take(LIMIT).map(|(_, n)| n).collect()
    }
}

fn id(n: u32) -> PointId {
    PointId::from_bytes(u128::from(n).to_be_bytes())
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The vector with noise, of length 1 again.
fn jittered(vector: &[f32], rng: &mut StdRng) -> Vec<f32> {
    let noisy: Vec<f32> = vector.iter().map(|value| value + JITTER * normal(rng)).collect();
    let length = dot(&noisy, &noisy).sqrt();
    noisy.into_iter().map(|value| value / length).collect()
}

/// A normally distributed number, by Box and Muller.
fn normal(rng: &mut StdRng) -> f32 {
    let (a, b): (f32, f32) = (rng.random(), rng.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f32::consts::TAU * b).cos()
}

fn read(file: &str, dims: usize) -> Result<Vec<Vec<f32>>, Error> {
    let bytes = fs::read(file)?;
    let (values, rest) = bytes.as_chunks::<4>();
    let vectors: Vec<Vec<f32>> = values
        .chunks_exact(dims)
        .map(|vector| vector.iter().copied().map(f32::from_le_bytes).collect())
        .collect();
    if vectors.is_empty() || !rest.is_empty() {
        return Err(format!("{file} has no vectors of {dims} dimensions").into());
    }
    Ok(vectors)
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn print_line(line: &str) {
    println!("{line}");
}

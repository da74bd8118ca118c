//! kill -9 at random moments. Acknowledged writes survive; an unacknowledged write was applied completely or not at all.
//!
//! The child is this test binary itself; an environment variable names the folder to work on. It prints each step that it
//! begins and each one that was acknowledged.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests"
)]

#[path = "support/common.rs"]
mod common;

use std::{
    collections::BTreeMap,
    env,
    io::{BufRead, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use common::{doc, id, name, point, spec};
use lkr_domain::{Scope, TaskId};
use lkr_state::{Expect, StateStore, StateStoreExt, TaskQueue, Write};
use lkr_store_lmdb::LmdbStore;
use lkr_vectors::{
    Collection, Condition, Filter, Include, MemoryVectors, Point, Query, QueryVector, Tags, VectorStore,
};
use rand::{RngExt, SeedableRng, rngs::StdRng};

const FOLDER: &str = "LKR_TEST_KILL_FOLDER";
const STARTS: &str = "LKR_TEST_KILL_STARTS";
/// Tasks that write concurrently, each to its own keys, so that commits contain groups.
const LANES: u32 = 3;
const KILLS: usize = 18;

/// Not a test: the work of the child process, which is killed.
#[test]
fn child() {
    let (Some(folder), Ok(starts)) = (env::var_os(FOLDER), env::var(STARTS)) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let store = common::open(Path::new(&folder));
        let lanes = starts
            .split(',')
            .zip(0..)
            .map(|(start, lane)| tokio::spawn(work(store.clone(), lane, start.parse().unwrap())));
        for lane in lanes.collect::<Vec<_>>() {
            lane.await.unwrap();
        }
    });
}

async fn work(store: LmdbStore, lane: u32, start: u32) {
    for step in start.. {
        print_line(&format!("begin {lane} {step}"));
        apply(&store.vectors(), lane, step).await;
        let value = step.to_string();
        store.state().apply(vec![Write::put(format!("lane/{lane}"), Expect::Any, value)]).await.unwrap();
        store.queue().push(task(lane, step), Duration::ZERO).await.unwrap();
        print_line(&format!("done {lane} {step}"));
    }
}

/// One write of several bytes, which a pipe transfers as a whole.
fn print_line(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

fn collection(lane: u32) -> Collection {
    name(&format!("lane-{lane}"))
}

fn task(lane: u32, step: u32) -> TaskId {
    TaskId::from_bytes((u128::from(lane) << 64 | u128::from(step)).to_be_bytes())
}

/// The change of a step, a function of lane and step.
async fn apply(vectors: &dyn VectorStore, lane: u32, step: u32) {
    let (name, mut rng) = (collection(lane), StdRng::seed_from_u64(u64::from(lane) << 32 | u64::from(step)));
    vectors.ensure(&spec(&name)).await.unwrap();
    let of = |step: u32| Filter::only(Condition::Docs(vec![doc(2 * step), doc(2 * step + 1)]));
    match step % 5 {
        3 => drop(vectors.delete(&name, &of(step - 3)).await.unwrap()),
        4 => {
            let tags = Tags::from([("step".to_owned(), step.to_string())]);
            vectors.set_tags(&name, &of(step - 2), &tags).await.unwrap();
        }
        _ => {
            // Twenty new points, and some of an earlier step again.
            let again = rng.random_range(0..=step) * 20;
            let points =
                (step * 20..step * 20 + 20).chain(again..again + 5).map(|n| point(n, &mut rng)).collect();
            vectors.upsert(&name, points).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_process_loses_no_acknowledged_write() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = StdRng::seed_from_u64(11);
    let reference = MemoryVectors::new();
    let mut starts = vec![0; LANES as usize];
    for kill in 0..KILLS {
        let acknowledged =
            run_and_kill(folder.path(), &starts, Duration::from_millis(rng.random_range(20..400)));
        let store = LmdbStore::open(folder.path(), common::exact()).unwrap();
        for lane in 0..LANES {
            let start = &mut starts[lane as usize];
            *start = settle(
                &store,
                &reference,
                lane,
                *start,
                acknowledged.get(&lane).copied().unwrap_or_default(),
            )
            .await;
        }
        verify_queue(&store, &starts).await;
        println!("kill {kill}: steps {starts:?}");
    }
    assert!(starts.iter().all(|start| *start > 20), "the child completed too few steps: {starts:?}");
    finds_all_by_clusters(folder.path(), &starts).await;
}

/// The last step that a lane began and the last one that was acknowledged, counted from 1.
#[derive(Debug, Default, Clone, Copy)]
struct Acknowledged {
    begun: u32,
    done: u32,
}

fn run_and_kill(folder: &Path, starts: &[u32], after: Duration) -> BTreeMap<u32, Acknowledged> {
    let starts: Vec<String> = starts.iter().map(u32::to_string).collect();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(FOLDER, folder)
        .env(STARTS, starts.join(","))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, received) = mpsc::channel();
    let out = child.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        BufReader::new(out).lines().map_while(Result::ok).try_for_each(|line| lines.send(line))
    });
    let mut output: Vec<String> = Vec::new();
    // The time starts with the first output, so that slow machines reach the work.
    while let Ok(line) = received.recv_timeout(Duration::from_secs(60)) {
        let began = line.starts_with("begin");
        output.push(line);
        if began {
            break;
        }
    }
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    output.extend(received);
    reader.join().unwrap().unwrap();
    let mut by_lane: BTreeMap<u32, Acknowledged> = BTreeMap::new();
    for line in output {
        // The test harness prints as well.
        let mut words = line.split(' ').rev();
        let (step, lane, word) = (words.next(), words.next(), words.next().unwrap_or_default());
        let (Some(Ok(step)), Some(Ok(lane))) = (step.map(str::parse::<u32>), lane.map(str::parse)) else {
            continue;
        };
        let of_lane = by_lane.entry(lane).or_default();
        match word {
            word if word.ends_with("begin") => of_lane.begun = step + 1,
            word if word.ends_with("done") => of_lane.done = step + 1,
            _ => {}
        }
    }
    by_lane
}

/// Checks a lane and returns its next step.
async fn settle(
    store: &LmdbStore,
    reference: &MemoryVectors,
    lane: u32,
    start: u32,
    acknowledged: Acknowledged,
) -> u32 {
    let done = acknowledged.done.max(start);
    for step in start..done {
        apply(reference, lane, step).await;
    }
    let begun = acknowledged.begun.max(done);
    assert!(begun <= done + 1);
    let vectors = store.vectors();
    let state = store.state().counter(&format!("lane/{lane}")).await.unwrap();
    let previous = u64::from(done.saturating_sub(1));
    assert!(
        state == previous || (begun > done && state == u64::from(done)),
        "record {state} after {done} steps"
    );
    let mut found = all(&vectors, lane).await;
    if begun > done && found != all(reference, lane).await {
        // The unacknowledged step was applied completely.
        apply(reference, lane, done).await;
        found = all(&vectors, lane).await;
    }
    assert!(found == all(reference, lane).await, "lane {lane} differs from its state after {done} steps");
    answers_equal(&vectors, reference, lane).await;
    // Repeating the step has no effect if it was applied.
    done
}

async fn all(vectors: &dyn VectorStore, lane: u32) -> Vec<Point> {
    let page = vectors.scroll(&collection(lane), &Filter::all(), None, usize::MAX, Include::All).await;
    match page {
        Ok(page) => page.points,
        Err(error) => {
            assert_eq!(error.kind(), lkr_vectors::ErrorKind::NotFound, "{error}");
            Vec::new()
        }
    }
}

async fn answers_equal(vectors: &dyn VectorStore, reference: &MemoryVectors, lane: u32) {
    let points = all(reference, lane).await;
    let tag = Condition::Tag { key: "fifth".to_owned(), any: vec!["2".to_owned()] };
    for point in points.iter().step_by(points.len() / 8 + 1) {
        for vector in
            [QueryVector::Dense(point.dense.clone().unwrap()), QueryVector::Sparse(point.sparse.clone())]
        {
            for filter in [Filter::all(), Filter::only(tag.clone())] {
                let query = [Query {
                    collection: collection(lane),
                    vector: vector.clone(),
                    scope: Scope::All,
                    filter,
                    limit: 20,
                }];
                let expected = reference.query_batch(&query).await.unwrap();
                assert_eq!(vectors.query_batch(&query).await.unwrap(), expected);
            }
        }
    }
}

/// Every acknowledged task is queued, and at most one more for each lane.
async fn verify_queue(store: &LmdbStore, starts: &[u32]) {
    let queued = store.queue().len().await.unwrap();
    let acknowledged: u64 = starts.iter().map(|start| u64::from(*start)).sum();
    assert!((acknowledged..=acknowledged + u64::from(LANES)).contains(&queued), "{queued} of {acknowledged}");
}

/// After all kills, the clusters find the vectors too.
async fn finds_all_by_clusters(folder: &Path, starts: &[u32]) {
    let store = common::open(folder);
    let vectors = store.vectors();
    for lane in 0..starts.len() as u32 {
        common::built(&vectors, &collection(lane)).await;
        let points = all(&vectors, lane).await;
        let queries: Vec<&Point> = points.iter().step_by(7).collect();
        let mut found = 0;
        for point in &queries {
            let vector = QueryVector::Dense(point.dense.clone().unwrap());
            let hits = common::search(&vectors, &collection(lane), vector, &Filter::all(), 5).await;
            found += usize::from(hits.iter().any(|hit| hit.id == point.id));
        }
        assert!(found * 100 >= queries.len() * 98, "{found} of {} find themselves", queries.len());
    }
    assert_eq!(vectors.get(&collection(0), &[id(u32::MAX)], Include::All).await.unwrap(), [None]);
}

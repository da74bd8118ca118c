//! Random steps give the same results as the implementations in memory.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::time::Duration;

use common::{config, ms, open, start};
use lkr_domain::TaskId;
use lkr_state::{
    Claim, ErrorKind, Expect, Key, Lane, MemoryQueue, MemoryState, Op, Record, Result, ScanOrder, StateStore,
    TaskQueue, Work, Write,
};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_support::RedisServer;
use proptest::{prelude::*, test_runner::TestRunner};
use tokio::runtime::Runtime;

const CASES: u32 = 40;
const LONG: Duration = Duration::from_secs(600);
const ZERO: Duration = Duration::ZERO;

/// A write of one of eight keys; whether its expectation holds depends on what was written before.
#[derive(Debug, Clone)]
struct RandomWrite {
    key: u8,
    expect: u8,
    op: u8,
    value: String,
}

fn random_writes() -> impl Strategy<Value = Vec<Vec<RandomWrite>>> {
    let values = prop_oneof![
        "[a-z]{0,3}",
        "\\+?0{0,2}[0-9]{1,22}",
        Just(u64::MAX.to_string()),
        Just("999999999999999999".to_owned()),
        Just("9007199254740993".to_owned()),
    ];
    let write = (0..8_u8, 0..8_u8, 0..10_u8, values);
    let write = write.prop_map(|(key, expect, op, value)| RandomWrite { key, expect, op, value });
    prop::collection::vec(prop::collection::vec(write, 1..5), 1..40)
}

/// The write for a store, in which the key has this record.
fn write(random: &RandomWrite, current: Option<&Record>) -> Write {
    let expect = match (random.expect, current) {
        (0, _) => Expect::Absent,
        (1, Some(record)) => Expect::Version(record.version),
        (2, Some(record)) => Expect::Version(record.version + 1),
        (2, None) => Expect::Version(1),
        _ => Expect::Any,
    };
    let op = match random.op {
        0..=3 => Op::Put { value: random.value.clone().into(), ttl: (random.op == 3).then_some(LONG) },
        4 => Op::Put { value: random.value.clone().into(), ttl: Some(ZERO) },
        5 => Op::Delete,
        6 => Op::Check,
        _ => Op::Increment,
    };
    Write { key: key(random.key), expect, op }
}

fn key(number: u8) -> Key {
    format!("k{}/{number}", number % 3)
}

/// What a step did, and what the store contains then. Versions differ between stores.
type Outcome = (Result<(), ErrorKind>, Vec<(Key, Vec<u8>)>, Vec<Key>);

async fn outcome(store: &dyn StateStore, step: &[RandomWrite]) -> Outcome {
    let keys: Vec<Key> = step.iter().map(|random| key(random.key)).collect();
    let current = store.get_many(&keys).await.unwrap();
    let writes = step.iter().zip(&current).map(|(random, current)| write(random, current.as_ref())).collect();
    let applied = store.apply(writes).await.map_err(|error| error.kind());
    let found = store.scan("k", None, ScanOrder::Ascending, 100).await.unwrap();
    let found = found.into_iter().map(|(key, record)| (key, record.value.to_vec())).collect();
    let descending = store.scan("k1/", Some("k1/5"), ScanOrder::Descending, 2).await.unwrap();
    (applied, found, descending.into_iter().map(|(key, _)| key).collect())
}

#[test]
fn random_steps_agree_with_the_state_in_memory() {
    let runtime = Runtime::new().unwrap();
    let Some((server, _)) = runtime.block_on(start()) else { return };
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() });
    let compared = runner.run(&random_writes(), |steps| {
        runtime.block_on(async {
            let (redis, memory) = (fresh(&server).await.state(), MemoryState::new());
            for step in &steps {
                assert_eq!(outcome(&redis, step).await, outcome(&memory, step).await, "{step:?}");
            }
        });
        Ok(())
    });
    compared.unwrap();
}

#[derive(Debug, Clone)]
enum QueueStep {
    Enqueue { task: u8, flow: u8, cost: u64, is_long: bool },
    Claim(u8),
    Finish(usize),
    Retry(usize),
    Heartbeat(usize),
    Remove(u8),
}

fn queue_steps() -> impl Strategy<Value = Vec<QueueStep>> {
    let costs = prop_oneof![Just(0), 1..100_000_u64, Just(u64::MAX)];
    let enqueue = (0..60_u8, 0..5_u8, costs, prop::bool::weighted(0.2))
        .prop_map(|(task, flow, cost, is_long)| QueueStep::Enqueue { task, flow, cost, is_long });
    let claimed = 0..8_usize;
    let step = prop_oneof![
        6 => enqueue,
        4 => (0..4_u8).prop_map(QueueStep::Claim),
        1 => claimed.clone().prop_map(QueueStep::Finish),
        1 => claimed.clone().prop_map(QueueStep::Retry),
        1 => claimed.prop_map(QueueStep::Heartbeat),
        1 => (0..60_u8).prop_map(QueueStep::Remove),
    ];
    prop::collection::vec(step, 1..80)
}

/// A queue, and the claims that were made.
struct Claims<'a> {
    queue: &'a dyn TaskQueue,
    claims: Vec<Claim>,
}

impl Claims<'_> {
    /// Does the step, and says what it did.
    async fn run(&mut self, step: &QueueStep) -> String {
        let claim = |number: usize| self.claims.get(self.claims.len().wrapping_sub(number + 1)).cloned();
        let kind = |result: Result<()>| format!("{:?}", result.map_err(|error| error.kind()));
        match step {
            QueueStep::Enqueue { task, flow, cost, is_long } => {
                let work = Work { flow: format!("flow {flow}"), cost: *cost, is_long: *is_long };
                kind(self.queue.enqueue(id(*task), work, ZERO).await)
            }
            QueueStep::Claim(lane) => {
                let lane = [Lane::Any, Lane::Short, Lane::Spare, Lane::Long][usize::from(*lane)];
                let claimed = self.queue.claim_in(lane, LONG, ZERO).await.unwrap();
                self.claims.extend(claimed.clone());
                format!("{:?}", claimed.map(|claim| claim.task))
            }
            QueueStep::Remove(task) => self.queue.remove(id(*task)).await.unwrap().to_string(),
            QueueStep::Finish(number) => match claim(*number) {
                Some(claim) => kind(self.queue.finish(&claim).await),
                None => String::new(),
            },
            QueueStep::Retry(number) => match claim(*number) {
                Some(claim) => kind(self.queue.retry(&claim, ZERO).await),
                None => String::new(),
            },
            QueueStep::Heartbeat(number) => match claim(*number) {
                Some(claim) => kind(self.queue.heartbeat(&claim, LONG).await),
                None => String::new(),
            },
        }
    }
}

fn id(task: u8) -> TaskId {
    TaskId::from_bytes([task; 16])
}

#[test]
fn random_steps_agree_with_the_queue_in_memory() {
    let runtime = Runtime::new().unwrap();
    let Some((server, _)) = runtime.block_on(start()) else { return };
    let mut runner =
        TestRunner::new(ProptestConfig { cases: CASES, failure_persistence: None, ..Default::default() });
    let compared = runner.run(&queue_steps(), |steps| {
        runtime.block_on(async {
            let (redis, memory) = (fresh(&server).await.queue(), MemoryQueue::new());
            let mut redis = Claims { queue: &redis, claims: Vec::new() };
            let mut memory = Claims { queue: &memory, claims: Vec::new() };
            for step in &steps {
                assert_eq!(redis.run(step).await, memory.run(step).await, "{step:?}");
                assert_eq!(redis.queue.len().await.unwrap(), memory.queue.len().await.unwrap());
                assert_eq!(redis.queue.oldest().await.unwrap(), memory.queue.oldest().await.unwrap());
            }
        });
        Ok(())
    });
    compared.unwrap();
}

/// An empty store on the server.
async fn fresh(server: &RedisServer) -> RedisStore {
    open(RedisConfig { prefix: TaskId::new().to_string(), ..config(server.url()) }).await
}

/// Long enough that a slow machine notices in order.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_and_delays_of_many_flows_end_in_the_order_of_their_ends() {
    let Some((_server, store)) = start().await else { return };
    let queue = store.queue();
    let work = |flow: &str| Work { flow: flow.to_owned(), ..Work::default() };
    let tasks: Vec<TaskId> = (0..4).map(|_| TaskId::new()).collect();
    for task in &tasks[..2] {
        queue.enqueue(*task, work("one"), ZERO).await.unwrap();
    }
    let expired = queue.claim_in(Lane::Spare, ms(300), ZERO).await.unwrap().unwrap();
    assert_eq!(queue.claim_in(Lane::Spare, LONG, ZERO).await.unwrap(), None, "the flow has a claim");
    queue.enqueue(tasks[2], work("two"), ms(600)).await.unwrap();
    // The lease ends first, so the flow is spare again, and its tasks come in the order in which they became claimable.
    let order = [tasks[1], tasks[2]];
    for task in order {
        assert_eq!(queue.claim_in(Lane::Spare, LONG, LONG).await.unwrap().unwrap().task, task);
    }
    assert_eq!(
        queue.finish(&expired).await.map_err(|error| error.kind()),
        Ok(()),
        "nobody else has claimed it"
    );
    assert_eq!(queue.len().await.unwrap(), 2);
}

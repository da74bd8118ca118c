//! Steps and reads of a few keys that all clients use.

use std::sync::Arc;

use lkr_state::{Expect, Op, Record, ScanOrder, StateStore, Write};
use lkr_test_history as history;
use lkr_test_history::{Call, Change, Outcome, Seen};
use rand::RngExt as _;
use tokio::time::sleep;

use crate::{client::Recording, common::ms};

/// Keys that are replaced, and keys that are deleted as well.
pub(crate) const KEYS: [&str; 6] = ["a", "b", "c", "d", "gone/a", "gone/b"];
const FIRST_DELETED: usize = 4;

pub(crate) async fn run(state: Arc<dyn StateStore>, recording: &Recording, lane: u32) {
    let counter = format!("count/{}/{lane}", recording.process);
    let mut known: Option<Vec<(String, Option<Record>)>> = None;
    let mut number = 0_u64;
    while recording.goes_on() {
        // Long histories fit into memory so.
        let pause = rand::rng().random_range(0..4);
        sleep(ms(pause)).await;
        number += 1;
        let keys = random_keys();
        // Sometimes a step expects what was read before the last step.
        if known.is_none() || rand::rng().random_ratio(9, 10) {
            let scans = rand::rng().random_ratio(1, 20);
            known = if scans { scan(&state, recording).await } else { read(&state, recording, keys).await };
        }
        let Some(found) = known.as_ref().filter(|_| rand::rng().random_ratio(2, 3)) else { continue };
        let value = format!("{}.{lane}.{number}", recording.process);
        let mut writes = writes(found, &value);
        if writes.is_empty() || rand::rng().random_ratio(1, 2) {
            writes.push(Write::increment(&counter));
        }
        step(&state, recording, writes).await;
        if rand::rng().random_ratio(1, 8) {
            read(&state, recording, vec![counter.clone(), KEYS[0].to_owned()]).await;
        }
    }
}

fn random_keys() -> Vec<String> {
    let mut random = rand::rng();
    let count = random.random_range(1..=3);
    let first = random.random_range(0..KEYS.len());
    let distance = random.random_range(1..=2);
    (0..count).map(|n| KEYS[(first + n * distance) % KEYS.len()].to_owned()).collect()
}

/// The writes of one or two keys. One step in six only increments a counter, which no expectation keeps from happening twice.
fn writes(found: &[(String, Option<Record>)], value: &str) -> Vec<Write> {
    let count = if rand::rng().random_ratio(1, 6) { 0 } else { 2 };
    found.iter().take(count).map(|(key, record)| write(key, record.as_ref(), value)).collect()
}

fn write(key: &str, record: Option<&Record>, value: &str) -> Write {
    let mut random = rand::rng();
    let expect = match record {
        Some(record) => Expect::Version(record.version),
        None => Expect::Absent,
    };
    let is_deleted = KEYS[FIRST_DELETED..].contains(&key);
    match record {
        Some(_) if is_deleted && random.random_ratio(1, 2) => Write::delete(key, expect),
        _ if random.random_ratio(1, 12) => Write::check(key, expect),
        _ if random.random_ratio(1, 12) => Write::put(key, Expect::Any, value.to_owned()),
        _ => Write::put(key, expect, value.to_owned()),
    }
}

/// Reads these keys at one moment, and records it.
pub(crate) async fn read(
    state: &Arc<dyn StateStore>,
    recording: &Recording,
    keys: Vec<String>,
) -> Option<Vec<(String, Option<Record>)>> {
    let found = |found: &Vec<Option<Record>>| {
        Outcome::Found(found.iter().map(|record| record.as_ref().map(seen)).collect())
    };
    let records = recording.record(Call::Read(keys.clone()), state.get_many(&keys), found).await?;
    Some(keys.into_iter().zip(records).collect())
}

/// Scans all keys, and records what it found of those in [`KEYS`].
pub(crate) async fn scan(
    state: &Arc<dyn StateStore>,
    recording: &Recording,
) -> Option<Vec<(String, Option<Record>)>> {
    let keys = KEYS.map(str::to_owned).to_vec();
    let of = |records: &[(String, Record)], key: &str| {
        records.iter().find(|(found, _)| found == key).map(|(_, record)| record.clone())
    };
    let found = |records: &Vec<(String, Record)>| {
        Outcome::Found(KEYS.iter().map(|key| of(records, key).as_ref().map(seen)).collect())
    };
    let scanning = state.scan("", None, ScanOrder::Ascending, 1_000);
    let records = recording.record(Call::Read(keys.clone()), scanning, found).await?;
    let mut found: Vec<_> = keys.into_iter().map(|key| (key.clone(), of(&records, &key))).collect();
    found.rotate_left(rand::rng().random_range(0..KEYS.len()));
    Some(found)
}

async fn step(state: &Arc<dyn StateStore>, recording: &Recording, writes: Vec<Write>) {
    let recorded = writes.iter().map(recorded).collect();
    recording.record(Call::Step(recorded), state.apply(writes), |()| Outcome::Done).await;
}

fn recorded(write: &Write) -> history::Write {
    let expect = match write.expect {
        Expect::Any => history::Expect::Any,
        Expect::Absent => history::Expect::Absent,
        Expect::Version(version) => history::Expect::Version(version),
    };
    let change = match &write.op {
        Op::Put { value, .. } => Change::Put(text(value)),
        Op::Delete => Change::Delete,
        Op::Increment => Change::Increment,
        Op::Check => Change::Check,
    };
    history::Write { key: write.key.clone(), expect, change }
}

fn seen(record: &Record) -> Seen {
    Seen { version: record.version, value: text(&record.value) }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

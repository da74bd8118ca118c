//! Merging one step of the journal into the remote store.

use std::collections::BTreeMap;

use bytes::Bytes;
use lkr_state::{
    Error, ErrorKind, Expect, Key, MAX_ATTEMPTS, Merged, OfflineChange, Op, Record, Result, StateStore,
    Write, contention_reason,
};

use crate::{
    journal::{Change, ChangeKind, Entry},
    receipt,
    records::Policies,
};

/// How often records are read because records that were read depend on them.
const MAX_ROUNDS: usize = 4;

/// The records of the remote store after a merge: values, and versions if they are known.
pub(crate) type Outcome = BTreeMap<Key, Option<MergedRecord>>;

/// A record after a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MergedRecord {
    pub(crate) value: Bytes,
    /// The version that the remote store gave it; `None` if the merge wrote it.
    pub(crate) version: Option<u64>,
    /// The time to live that the merge gave it.
    pub(crate) ttl: Option<std::time::Duration>,
}

/// Merges a step in one step of the remote store, which writes the step's receipt too. So it is merged once, even if this
/// is called again because the first call was cut off.
///
/// # Errors
/// `Unavailable` if the remote store is away, `Contention` if its records never pause to change.
pub(crate) async fn merge_step(
    remote: &dyn StateStore,
    policies: &Policies,
    entry: &Entry,
) -> Result<Outcome> {
    for _ in 0..MAX_ATTEMPTS {
        let found = read_records(remote, policies, entry).await?;
        if found.get(&receipt::key(&entry.id)).is_some_and(Option::is_some) {
            return Ok(outcome(found, &BTreeMap::new()));
        }
        let merge = merge_records(policies, entry, &found);
        match remote.apply(step(entry, &found, &merge.writes)).await {
            Ok(()) => {
                for reason in &merge.overruled {
                    tracing::warn!(reason, "a change made during the outage was overruled");
                }
                return Ok(outcome(found, &merge.writes));
            }
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::new(ErrorKind::Contention, "merge journal", contention_reason(MAX_ATTEMPTS)))
}

/// The records that a step changes or depends on, and its receipt.
async fn read_records(
    remote: &dyn StateStore,
    policies: &Policies,
    entry: &Entry,
) -> Result<BTreeMap<Key, Option<Record>>> {
    let mut found = BTreeMap::new();
    let mut keys = vec![receipt::key(&entry.id)];
    keys.extend(entry.changes.iter().map(|change| change.key.clone()));
    for _ in 0..MAX_ROUNDS {
        keys.retain(|key| !found.contains_key(key));
        if keys.is_empty() {
            break;
        }
        let records = remote.get_many(&keys).await?;
        found.extend(keys.drain(..).zip(records));
        keys.extend(entry.changes.iter().flat_map(|change| depends_on(policies, change)));
    }
    Ok(found)
}

fn depends_on(policies: &Policies, change: &Change) -> Vec<Key> {
    match (&change.kind, policies.of(&change.key), &change.value) {
        (ChangeKind::Put { .. }, Some(policy), Some(value)) => policy.depends_on(&change.key, value),
        _ => Vec::new(),
    }
}

/// What a merge writes, and what it does not.
#[derive(Default)]
struct Merge {
    writes: BTreeMap<Key, Op>,
    overruled: Vec<String>,
}

fn merge_records(policies: &Policies, entry: &Entry, found: &BTreeMap<Key, Option<Record>>) -> Merge {
    let mut current: BTreeMap<Key, Option<Bytes>> = found
        .iter()
        .map(|(key, record)| (key.clone(), record.as_ref().map(|record| record.value.clone())))
        .collect();
    let restricting = entry.changes.iter().any(|change| is_authority_lost(policies, change, &current));
    let mut merge = Merge::default();
    for change in &entry.changes {
        let op = match change.kind {
            ChangeKind::Check => None,
            ChangeKind::Increment => Some(Op::Increment),
            ChangeKind::Put { .. } | ChangeKind::Delete => {
                match merge_change(policies, entry, change, &current, restricting) {
                    Merged::Keep => None,
                    Merged::Overruled(reason) => {
                        merge.overruled.push(reason);
                        None
                    }
                    Merged::Put { value, ttl } => Some(Op::Put { value, ttl }),
                    Merged::Delete => Some(Op::Delete),
                }
            }
        };
        match &op {
            Some(Op::Put { value, .. }) => drop(current.insert(change.key.clone(), Some(value.clone()))),
            Some(Op::Delete) => drop(current.insert(change.key.clone(), None)),
            _ => {}
        }
        merge.writes.extend(op.map(|op| (change.key.clone(), op)));
    }
    merge
}

fn is_authority_lost(policies: &Policies, change: &Change, current: &BTreeMap<Key, Option<Bytes>>) -> bool {
    let theirs = current.get(&change.key).and_then(Option::as_deref);
    let policy = policies.of(&change.key).filter(|_| change.kind == ChangeKind::Check);
    policy.is_some_and(|policy| policy.is_authority_lost(&change.key, change.base.as_deref(), theirs))
}

fn merge_change(
    policies: &Policies,
    entry: &Entry,
    change: &Change,
    current: &BTreeMap<Key, Option<Bytes>>,
    restricting: bool,
) -> Merged {
    let Some(policy) = policies.of(&change.key) else { return Merged::Keep };
    let ttl = change.ttl().map(|ttl| ttl.saturating_sub(entry.age()));
    if ttl.is_some_and(|ttl| ttl.is_zero()) {
        // It expired while it waited.
        return Merged::Keep;
    }
    policy.merge(&OfflineChange {
        key: &change.key,
        base: change.base.as_deref(),
        ours: change.value.as_deref(),
        theirs: current.get(&change.key).and_then(Option::as_deref),
        ttl,
        related: current,
        restricting,
    })
}

/// The step of the remote store: what the merge writes, and checks that all else it read is unchanged.
fn step(entry: &Entry, found: &BTreeMap<Key, Option<Record>>, writes: &BTreeMap<Key, Op>) -> Vec<Write> {
    let receipt_key = receipt::key(&entry.id);
    let mut step = vec![receipt::write(&entry.id)];
    for (key, record) in found.iter().filter(|(key, _)| **key != receipt_key) {
        let op = writes.get(key).cloned().unwrap_or(Op::Check);
        let expect = match (&op, record) {
            (Op::Increment, _) => Expect::Any,
            (_, Some(record)) => Expect::Version(record.version),
            (_, None) => Expect::Absent,
        };
        step.push(Write { key: key.clone(), expect, op });
    }
    step
}

fn outcome(found: BTreeMap<Key, Option<Record>>, writes: &BTreeMap<Key, Op>) -> Outcome {
    let merged = |(key, record): (Key, Option<Record>)| {
        let kept = |record: Record| {
            let Record { value, version } = record;
            MergedRecord { value, version: Some(version), ttl: None }
        };
        let after = match writes.get(&key) {
            Some(Op::Put { value, ttl }) => {
                Some(MergedRecord { value: value.clone(), version: None, ttl: *ttl })
            }
            Some(Op::Delete) => None,
            Some(Op::Increment) => {
                let count = record.map_or(0, |record| record.as_counter()).saturating_add(1);
                Some(MergedRecord { value: count.to_string().into(), version: None, ttl: None })
            }
            Some(Op::Check) | None => record.map(kept),
        };
        (key, after)
    };
    found.into_iter().map(merged).collect()
}

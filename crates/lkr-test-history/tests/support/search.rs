//! Whether some order of all operations explains their answers, by trying all orders: the method of Wing and Gong, with the
//! states that were met remembered as Lowe does. For small histories only.
//!
//! Versions are those of the history: a write gets the version that some read shows for its value, or one that is not known
//! yet.

use std::collections::{BTreeMap, HashSet};

use lkr_test_history::{Call, Change, Expect, Operation, Outcome, Seen};

/// The records: their values, and their versions once a read or an expectation has shown them.
type Records = BTreeMap<String, (String, Option<u64>)>;

pub(crate) fn has_an_order(operations: &[Operation]) -> bool {
    let Some(versions) = versions(operations) else { return false };
    let mut search = Search { operations, versions, met: HashSet::new() };
    search.run(0, &Records::new(), &BTreeMap::new())
}

/// The version of each value of a key; `None` if a value has two, or a version has two values.
fn versions(operations: &[Operation]) -> Option<BTreeMap<(String, String), u64>> {
    let mut versions = BTreeMap::new();
    let mut values = BTreeMap::new();
    for operation in operations {
        let (Call::Read(keys), Outcome::Found(found)) = (&operation.call, &operation.outcome) else {
            continue;
        };
        for (key, seen) in keys.iter().zip(found) {
            let Some(Seen { version, value }) = seen else { continue };
            let known = versions.insert((key.clone(), value.clone()), *version);
            let named = values.insert((key.clone(), *version), value.clone());
            if known.is_some_and(|known| known != *version) || named.is_some_and(|named| named != *value) {
                return None;
            }
        }
    }
    Some(versions)
}

struct Search<'a> {
    operations: &'a [Operation],
    versions: BTreeMap<(String, String), u64>,
    /// Sets of operations that were done, with the records after them.
    met: HashSet<(u64, String)>,
}

impl Search<'_> {
    /// Whether the operations that are not in `done` can follow. `last` has the largest known version of each key.
    fn run(&mut self, done: u64, records: &Records, last: &BTreeMap<String, u64>) -> bool {
        let is_left = |number: usize| done & (1 << number) == 0;
        let left: Vec<usize> = (0..self.operations.len()).filter(|number| is_left(*number)).collect();
        if left.iter().all(|number| self.operations[*number].end.is_none()) {
            return true;
        }
        if !self.met.insert((done, format!("{records:?}{last:?}"))) {
            return false;
        }
        let first_end = left.iter().filter_map(|number| self.operations[*number].end).min();
        for number in left {
            let operation = &self.operations[number];
            if first_end.is_some_and(|end| end < operation.start) {
                continue;
            }
            for (records, last) in self.outcomes(operation, records, last) {
                if self.run(done | 1 << number, &records, &last) {
                    return true;
                }
            }
        }
        false
    }

    /// What may be after the operation, if its answer fits.
    fn outcomes(
        &self,
        operation: &Operation,
        records: &Records,
        last: &BTreeMap<String, u64>,
    ) -> Vec<(Records, BTreeMap<String, u64>)> {
        let same = || vec![(records.clone(), last.clone())];
        match (&operation.call, &operation.outcome) {
            (Call::Read(keys), Outcome::Found(found)) => {
                let fits = keys.iter().zip(found).all(|(key, seen)| match (records.get(key), seen) {
                    (None, None) => true,
                    (Some((value, version)), Some(seen)) => {
                        *value == seen.value && version.is_none_or(|version| version == seen.version)
                    }
                    _ => false,
                });
                if fits { same() } else { Vec::new() }
            }
            (Call::Step(writes), outcome) => {
                let certain = |write: &lkr_test_history::Write| holds(write.expect, records.get(&write.key));
                let all = writes.iter().all(|write| certain(write) != Some(false));
                let none = writes.iter().any(|write| certain(write) != Some(true));
                let mut after = Vec::new();
                if *outcome != Outcome::Conflict && all {
                    after.extend(self.apply(writes, records, last));
                }
                if *outcome == Outcome::Conflict && none {
                    after.extend(same());
                }
                after
            }
            _ => same(),
        }
    }

    /// The records after a step; `None` if a version would not grow.
    fn apply(
        &self,
        writes: &[lkr_test_history::Write],
        records: &Records,
        last: &BTreeMap<String, u64>,
    ) -> Option<(Records, BTreeMap<String, u64>)> {
        let (mut records, mut last) = (records.clone(), last.clone());
        for write in writes {
            // The step was applied, so the version that it expects was the record's.
            if let Expect::Version(version) = write.expect {
                let known = last.entry(write.key.clone()).or_default();
                if let Some((_, own)) = records.get_mut(&write.key) {
                    if own.is_none() && version <= *known {
                        return None;
                    }
                    *own = Some(version);
                }
                *known = version.max(*known);
            }
            let value = match &write.change {
                Change::Put(value) => value.clone(),
                Change::Increment => {
                    let count =
                        records.get(&write.key).map_or(0, |(value, _)| value.parse().unwrap_or(0_u64));
                    (count + 1).to_string()
                }
                Change::Delete => {
                    records.remove(&write.key);
                    continue;
                }
                Change::Check => continue,
            };
            let version = self.versions.get(&(write.key.clone(), value.clone())).copied();
            if let Some(version) = version {
                let known = last.entry(write.key.clone()).or_default();
                if version <= *known {
                    return None;
                }
                *known = version;
            }
            records.insert(write.key.clone(), (value, version));
        }
        Some((records, last))
    }
}

/// Whether an expectation holds; `None` if the version of the record is not known.
fn holds(expect: Expect, record: Option<&(String, Option<u64>)>) -> Option<bool> {
    match (expect, record) {
        (Expect::Any, _) | (Expect::Absent, None) => Some(true),
        (Expect::Absent, Some(_)) | (Expect::Version(_), None) => Some(false),
        (Expect::Version(version), Some((_, known))) => known.map(|known| known == version),
    }
}

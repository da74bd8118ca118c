//! Histories of a correct store: every operation takes effect at one moment between its start and its end.

use std::collections::BTreeMap;

use lkr_test_history::{Call, Change, Expect, Operation, Outcome, Seen, Write};

const KEYS: [&str; 3] = ["a", "b", "c"];
pub(crate) const COUNTER: &str = "n";
const PROCESSES: usize = 4;

/// A history, and reads that can be made stale.
pub(crate) struct History {
    pub(crate) operations: Vec<Operation>,
    /// An operation, the position among its keys, and a record that was replaced before the operation began.
    pub(crate) stale: Vec<(usize, usize, Seen)>,
}

/// A generator of numbers (SplitMix64), so that a seed always makes the same history.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((number ^ (number >> 31)) % bound as u64) as usize
    }
}

struct Store {
    random: Random,
    records: BTreeMap<&'static str, Seen>,
    version: u64,
    /// Every record that was replaced, with the end of the acknowledged step that replaced it. That step came certainly later
    /// than the record: it expected its version, or began after the end of the step that wrote it.
    replaced: Vec<(&'static str, Seen, u64)>,
    /// The end of the step that wrote each record.
    written: BTreeMap<&'static str, u64>,
}

/// The history of so many operations.
pub(crate) fn simulate(seed: u64, count: usize) -> History {
    let mut store = Store {
        random: Random(seed),
        records: BTreeMap::new(),
        version: 0,
        replaced: Vec::new(),
        written: BTreeMap::new(),
    };
    let mut free_at = [0; PROCESSES];
    let mut history = History { operations: Vec::new(), stale: Vec::new() };
    for number in 0..count {
        // Operations take effect at these times, one after another.
        let moment = 100 * (number as u64 + 1);
        let process = store.random.below(PROCESSES);
        if free_at[process] >= moment {
            continue;
        }
        let reach = |random: &mut Random| random.below(350) as u64;
        let start = moment.saturating_sub(reach(&mut store.random)).max(free_at[process] + 1);
        let end = moment + 1 + reach(&mut store.random);
        free_at[process] = end;
        let is_unknown = store.random.below(8) == 0;
        let (call, outcome) = match store.random.below(2) {
            0 => store.read(),
            _ => store.step(number, [start, end], is_unknown),
        };
        if is_unknown && matches!(call, Call::Read(_)) {
            continue;
        }
        let position = history.operations.len();
        if let (Call::Read(keys), Outcome::Found(_)) = (&call, &outcome) {
            for (index, key) in keys.iter().enumerate() {
                let old = store.replaced.iter().filter(|(name, _, by)| name == key && *by < start);
                history.stale.extend(old.map(|(_, seen, _)| (position, index, seen.clone())));
            }
        }
        let (end, outcome) = if is_unknown { (None, Outcome::Unknown) } else { (Some(end), outcome) };
        history.operations.push(Operation { process: process as u32, start, end, call, outcome });
    }
    history
}

impl Store {
    fn read(&mut self) -> (Call, Outcome) {
        let first = self.random.below(KEYS.len());
        let mut keys = vec![KEYS[first]];
        if self.random.below(2) == 0 {
            keys.push(KEYS[(first + 1) % KEYS.len()]);
        }
        if self.random.below(4) == 0 {
            keys.push(COUNTER);
        }
        let found = keys.iter().map(|key| self.records.get(key).cloned()).collect();
        (Call::Read(keys.into_iter().map(str::to_owned).collect()), Outcome::Found(found))
    }

    /// A step on one or two keys. A step of unknown outcome is applied or not.
    fn step(&mut self, number: usize, [start, end]: [u64; 2], is_unknown: bool) -> (Call, Outcome) {
        let first = self.random.below(KEYS.len());
        let mut keys = vec![KEYS[first]];
        if self.random.below(2) == 0 {
            keys.push(KEYS[(first + 1) % KEYS.len()]);
        }
        let mut writes: Vec<Write> = keys.iter().map(|key| self.write(key, number)).collect();
        if self.random.below(3) == 0 {
            writes.push(Write { key: COUNTER.to_owned(), expect: Expect::Any, change: Change::Increment });
        }
        let holds = writes.iter().all(|write| match write.expect {
            Expect::Any => true,
            Expect::Absent => !self.records.contains_key(write.key.as_str()),
            Expect::Version(version) => {
                self.records.get(write.key.as_str()).is_some_and(|seen| seen.version == version)
            }
        });
        if holds && !(is_unknown && self.random.below(2) == 0) {
            self.apply(&writes, start, if is_unknown { u64::MAX } else { end });
        }
        (Call::Step(writes), if holds { Outcome::Done } else { Outcome::Conflict })
    }

    fn write(&mut self, key: &'static str, number: usize) -> Write {
        let mut expect = match self.records.get(key) {
            Some(seen) => Expect::Version(seen.version),
            None => Expect::Absent,
        };
        match self.random.below(10) {
            0 => expect = Expect::Any,
            1 => expect = Expect::Absent,
            2 if self.version > 0 => {
                expect = Expect::Version(1 + self.random.below(self.version as usize) as u64);
            }
            // A version that was replaced.
            3 => {
                let old = self.replaced.iter().rev().find(|(name, _, _)| *name == key);
                expect = old.map_or(expect, |(_, seen, _)| Expect::Version(seen.version));
            }
            _ => {}
        }
        let change = match (self.random.below(6), expect) {
            (0, Expect::Version(_)) => Change::Delete,
            (1, _) => Change::Check,
            _ => Change::Put(number.to_string()),
        };
        Write { key: key.to_owned(), expect, change }
    }

    fn apply(&mut self, writes: &[Write], start: u64, end: u64) {
        self.version += 1;
        for write in writes {
            let Some(key) = KEYS.into_iter().chain([COUNTER]).find(|key| *key == write.key) else { continue };
            let old = self.records.get(key).cloned();
            let value = match &write.change {
                Change::Put(value) => Some(value.clone()),
                Change::Delete => None,
                Change::Increment => {
                    let count: u64 = old.as_ref().map_or(0, |seen| seen.value.parse().unwrap());
                    Some((count + 1).to_string())
                }
                Change::Check => continue,
            };
            let written = self.written.insert(key, end).unwrap_or_default();
            let is_later = matches!(write.expect, Expect::Version(_)) || start > written;
            let old = old.filter(|_| key != COUNTER && is_later);
            self.replaced.extend(old.map(|old| (key, old, end)));
            match value {
                Some(value) => self.records.insert(key, Seen { version: self.version, value }),
                None => self.records.remove(key),
            };
        }
    }
}

/// A small history of which some answers were exchanged.
pub(crate) fn disturbed(seed: u64, count: usize, changes: usize) -> Vec<Operation> {
    let mut operations = simulate(seed, count).operations;
    let mut random = Random(!seed);
    let seen: Vec<Option<Seen>> = operations.iter().flat_map(answers).collect();
    for _ in 0..changes {
        if operations.is_empty() || seen.is_empty() {
            break;
        }
        let number = random.below(operations.len());
        let other = seen[random.below(seen.len())].clone();
        match &mut operations[number].outcome {
            Outcome::Found(found) => {
                let position = random.below(found.len());
                found[position] = other;
            }
            outcome @ Outcome::Done => *outcome = Outcome::Conflict,
            outcome @ Outcome::Conflict => *outcome = Outcome::Done,
            _ => {}
        }
    }
    operations
}

fn answers(operation: &Operation) -> Vec<Option<Seen>> {
    match &operation.outcome {
        Outcome::Found(found) => found.clone(),
        _ => Vec::new(),
    }
}

//! What the answers of a history show: which versions a key had, who wrote and who read them.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::{Anomaly, AnomalyKind, Change, Expect, Operation, Outcome, Seen};

/// What is known of a history. Operations are named by their numbers, keys by theirs.
pub(super) struct Observed<'a> {
    pub(super) operations: &'a [Operation],
    /// The keys that are not counters.
    pub(super) keys: Vec<&'a str>,
    /// What is known of each key.
    pub(super) registers: Vec<Register>,
    /// Whether a step was certainly applied.
    pub(super) happened: Vec<bool>,
    /// By when an operation took effect: its end, or an earlier time at which its effect was seen.
    pub(super) ends: Vec<u64>,
    numbers: HashMap<&'a str, usize>,
}

/// What is known of a key.
#[derive(Default)]
pub(super) struct Register {
    /// The versions with their writers; `None` if no read showed the value.
    pub(super) versions: BTreeMap<u64, Option<usize>>,
    /// Who read a version, or was applied because it expected that version.
    pub(super) readers: BTreeMap<u64, Vec<usize>>,
    /// Who found the key absent, or was applied because it expected that.
    pub(super) absent: Vec<usize>,
    /// The steps that put a value and may have been applied.
    pub(super) puts: Vec<usize>,
    /// The steps that delete and may have been applied, with the versions that they expect.
    pub(super) deletes: Vec<(usize, Option<u64>)>,
}

/// Collects what the answers show.
pub(super) fn collect<'a>(operations: &'a [Operation], anomalies: &mut Vec<Anomaly>) -> Observed<'a> {
    let counters = counters(operations);
    let mut observed = Observed {
        operations,
        keys: Vec::new(),
        registers: Vec::new(),
        happened: operations.iter().map(|operation| operation.outcome == Outcome::Done).collect(),
        ends: operations.iter().map(Operation::latest).collect(),
        numbers: HashMap::new(),
    };
    let mut writers = HashMap::new();
    for (number, operation) in operations.iter().enumerate() {
        for write in operation.writes().iter().filter(|write| !counters.contains(write.key.as_str())) {
            let register = observed.register(&write.key);
            match &write.change {
                Change::Put(value) => {
                    writers.insert((write.key.as_str(), value.as_str()), number);
                    if operation.may_have_happened() {
                        register.puts.push(number);
                    }
                }
                Change::Delete if operation.may_have_happened() => {
                    let version = match write.expect {
                        Expect::Version(version) => Some(version),
                        Expect::Any | Expect::Absent => None,
                    };
                    register.deletes.push((number, version));
                }
                _ => {}
            }
        }
    }
    let mut seen = SeenValues { writers, values: HashMap::new(), versions: HashMap::new() };
    for (reader, operation) in operations.iter().enumerate() {
        for (key, found) in operation.found().filter(|(key, _)| !counters.contains(key)) {
            match found {
                Some(found) => observed.note_read(reader, key, found, &mut seen, anomalies),
                None => observed.register(key).absent.push(reader),
            }
        }
    }
    for number in 0..operations.len() {
        if observed.happened.get(number) == Some(&true) {
            observed.note_expectations(number);
        }
    }
    observed
}

/// The keys with increments.
pub(super) fn counters(operations: &[Operation]) -> HashSet<&str> {
    let writes = operations.iter().flat_map(Operation::writes);
    writes.filter(|write| write.change == Change::Increment).map(|write| write.key.as_str()).collect()
}

/// The values that were seen.
struct SeenValues<'a> {
    /// The steps by the key and value that they put.
    writers: HashMap<(&'a str, &'a str), usize>,
    /// The first read of each version.
    values: HashMap<(&'a str, u64), (&'a str, usize)>,
    /// The first read of each value.
    versions: HashMap<(&'a str, &'a str), (u64, usize)>,
}

impl<'a> Observed<'a> {
    pub(super) fn end(&self, number: usize) -> u64 {
        self.ends.get(number).copied().unwrap_or(u64::MAX)
    }

    pub(super) fn start(&self, number: usize) -> u64 {
        self.operations.get(number).map_or(0, |operation| operation.start)
    }

    pub(super) fn has_happened(&self, number: usize) -> bool {
        self.happened.get(number) == Some(&true)
    }

    pub(super) fn register_of(&self, key: &str) -> Option<&Register> {
        self.registers.get(*self.numbers.get(key)?)
    }

    /// Notes that a step was applied, and that its effect was there at the time `by`.
    pub(super) fn note_happened(&mut self, number: usize, by: u64) {
        if let Some(end) = self.ends.get_mut(number) {
            *end = by.min(*end);
        }
        if let Some(happened) = self.happened.get_mut(number) {
            *happened = true;
        }
    }

    /// Notes that an applied step found what it expects.
    pub(super) fn note_expectations(&mut self, number: usize) {
        let operations = self.operations;
        for write in operations.get(number).map(Operation::writes).unwrap_or_default() {
            if !self.numbers.contains_key(write.key.as_str()) {
                continue;
            }
            let register = self.register(&write.key);
            match write.expect {
                Expect::Any => {}
                Expect::Absent => register.absent.push(number),
                Expect::Version(version) => {
                    register.versions.entry(version).or_default();
                    register.readers.entry(version).or_default().push(number);
                }
            }
        }
    }

    fn register(&mut self, key: &'a str) -> &mut Register {
        let number = *self.numbers.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.registers.push(Register::default());
            self.keys.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "every number in the map is that of a register")]
        &mut self.registers[number]
    }

    fn note_read(
        &mut self,
        reader: usize,
        key: &'a str,
        found: &'a Seen,
        seen: &mut SeenValues<'a>,
        anomalies: &mut Vec<Anomaly>,
    ) {
        let (value, version) = (found.value.as_str(), found.version);
        let mut report = |kind, detail: String, others: &[usize]| {
            let shown = others.iter().chain([&reader]).filter_map(|number| self.operations.get(*number));
            anomalies.push(Anomaly::new(kind, detail, shown));
        };
        let (first_value, first) = *seen.values.entry((key, version)).or_insert((value, reader));
        if first_value != value {
            let detail = format!("version {version} of {key} is both {first_value:?} and {value:?}");
            report(AnomalyKind::VersionRepeated, detail, &[first]);
        }
        let (first_version, first) = *seen.versions.entry((key, value)).or_insert((version, reader));
        let writer = seen.writers.get(&(key, value)).copied();
        if first_version != version {
            let detail = format!("{value:?} of {key} has the versions {first_version} and {version}");
            let shown: Vec<usize> = writer.into_iter().chain([first]).collect();
            report(AnomalyKind::AppliedTwice, detail, &shown);
        }
        match writer {
            None => report(AnomalyKind::UnwrittenValue, format!("nobody wrote {value:?} to {key}"), &[]),
            Some(writer) => {
                if self.operations.get(writer).is_some_and(|o| o.outcome == Outcome::Conflict) {
                    let detail = format!("{value:?} of {key} was written by a step that was refused");
                    report(AnomalyKind::ConflictApplied, detail, &[writer]);
                }
                self.note_happened(writer, self.end(reader));
            }
        }
        let register = self.register(key);
        register.versions.insert(version, writer);
        register.readers.entry(version).or_default().push(reader);
    }
}

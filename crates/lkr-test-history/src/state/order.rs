//! The order that versions imply.

use std::ops::Bound;

use crate::{
    Anomaly, AnomalyKind, Change, Expect,
    graph::{Graph, Reason},
};

use super::observed::{Observed, Register};

/// What is known of a history, and before and after what a key was found absent.
pub(super) struct Absences<'a> {
    pub(super) observed: Observed<'a>,
    /// Who found which key absent, in which time without a record.
    found: Vec<(usize, usize, Gap)>,
}

/// A time in which a key had no record.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// The step that deleted the record; `None` before the first one.
    delete: Option<usize>,
    /// When it begins at the earliest.
    start: u64,
    /// When it has ended at the latest.
    end: u64,
    /// The next known version.
    next: Option<u64>,
}

/// Finds out in which gap each absent record was found. Where several are possible, nothing follows; where none is, an
/// acknowledged write was lost.
pub(super) fn resolve_absences<'a>(mut observed: Observed<'a>, anomalies: &mut Vec<Anomaly>) -> Absences<'a> {
    loop {
        let (mut found, mut missing, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for (key, register) in observed.registers.iter().enumerate() {
            let gaps = gaps(&observed, register);
            for reader in &register.absent {
                let written = written_version(&observed, key, register, *reader);
                let mut possible = gaps.iter().filter(|gap| {
                    gap.delete != Some(*reader)
                        && gap.start <= observed.end(*reader)
                        && gap.end >= observed.start(*reader)
                        && written.is_none_or(|written| gap.next == Some(written))
                });
                match (possible.next(), possible.next()) {
                    (Some(gap), None) => {
                        found.push((key, *reader, *gap));
                        let step = gap.delete.filter(|delete| !observed.has_happened(*delete));
                        deleted.extend(step.map(|delete| (delete, observed.end(*reader))));
                    }
                    (None, _) => missing.push((key, *reader)),
                    _ => {}
                }
            }
        }
        if deleted.is_empty() {
            report(&observed, &missing, anomalies);
            return Absences { observed, found };
        }
        // That these steps were applied may show more.
        for (delete, by) in deleted {
            let is_known = observed.has_happened(delete);
            observed.note_happened(delete, by);
            if !is_known {
                observed.note_expectations(delete);
            }
        }
    }
}

/// The order of all readers and writers of a version, and of those of the next one.
pub(super) fn add_versions(absences: &Absences<'_>, graph: &mut Graph) {
    let observed = &absences.observed;
    for (key, register) in observed.registers.iter().enumerate() {
        for (version, writer) in &register.versions {
            let next = next_version(register, *version).and_then(|(_, writer)| writer);
            if let (Some(writer), Some(next)) = (writer, next) {
                graph.add(*writer, next, Reason::WriteWrite(key));
            }
            let readers = register.readers.get(version).map(Vec::as_slice).unwrap_or_default();
            let replacing: Vec<usize> =
                readers.iter().copied().filter(|reader| changes(observed, key, *reader)).collect();
            for reader in readers {
                if let Some(writer) = writer {
                    graph.add(*writer, *reader, Reason::WriteRead(key));
                }
                for next in replacing.iter().copied().chain(next) {
                    graph.add(*reader, next, Reason::ReadWrite(key));
                }
            }
        }
    }
    for (key, reader, gap) in &absences.found {
        if let Some(delete) = gap.delete {
            graph.add(delete, *reader, Reason::WriteRead(*key));
        }
        let register = observed.registers.get(*key);
        let next = register.and_then(|register| *register.versions.get(&gap.next?)?);
        if let Some(next) = next {
            graph.add(*reader, next, Reason::ReadWrite(*key));
        }
    }
}

/// All gaps of a key that are possible.
fn gaps(observed: &Observed<'_>, register: &Register) -> Vec<Gap> {
    // The applied puts by their start, each with the earliest end among it and those that start later.
    let applied = register.puts.iter().filter(|put| observed.has_happened(**put));
    let mut puts: Vec<(u64, u64)> = applied.map(|put| (observed.start(*put), observed.end(*put))).collect();
    puts.sort_unstable();
    let mut earliest = u64::MAX;
    for (_, end) in puts.iter_mut().rev() {
        earliest = earliest.min(*end);
        *end = earliest;
    }
    let gap = |delete: Option<usize>, start, by, next: Option<(u64, Option<usize>)>| {
        let first_after = puts.partition_point(|(start, _)| delete.is_some() && *start <= by);
        let put_end = puts.get(first_after).map_or(u64::MAX, |(_, end)| *end);
        let next_end = next.and_then(|(_, writer)| writer).map_or(u64::MAX, |writer| observed.end(writer));
        Gap { delete, start, end: put_end.min(next_end), next: next.map(|(version, _)| version) }
    };
    let first = register.versions.iter().next().map(|(version, writer)| (*version, *writer));
    let mut gaps = vec![gap(None, 0, 0, first)];
    gaps.extend(register.deletes.iter().map(|(delete, version)| {
        let next = version.and_then(|version| next_version(register, version));
        gap(Some(*delete), observed.start(*delete), observed.end(*delete), next)
    }));
    gaps
}

fn next_version(register: &Register, version: u64) -> Option<(u64, Option<usize>)> {
    let mut later = register.versions.range((Bound::Excluded(version), Bound::Unbounded));
    later.next().map(|(version, writer)| (*version, *writer))
}

/// Whether a step replaces or removes what it expects of the key.
fn changes(observed: &Observed<'_>, key: usize, number: usize) -> bool {
    let Some(operation) = observed.operations.get(number) else { return false };
    let name = observed.keys.get(key).copied();
    let mut writes = operation.writes().iter().filter(|write| Some(write.key.as_str()) == name);
    writes.any(|write| matches!(write.change, Change::Put(_) | Change::Delete))
}

/// The version that the step wrote to the key that it expected to be absent, if it is known.
fn written_version(observed: &Observed<'_>, key: usize, register: &Register, number: usize) -> Option<u64> {
    let name = observed.keys.get(key).copied();
    let mut writes = observed.operations.get(number)?.writes().iter();
    let write = writes.find(|write| Some(write.key.as_str()) == name && write.expect == Expect::Absent)?;
    if !matches!(write.change, Change::Put(_)) {
        return None;
    }
    let mut versions = register.versions.iter();
    versions.find(|(_, writer)| **writer == Some(number)).map(|(version, _)| *version)
}

fn report(observed: &Observed<'_>, missing: &[(usize, usize)], anomalies: &mut Vec<Anomaly>) {
    for (key, reader) in missing {
        let key = observed.keys.get(*key).copied().unwrap_or_default();
        let detail = format!("{key} was found absent although its record was not deleted");
        anomalies.push(Anomaly::new(AnomalyKind::LostWrite, detail, observed.operations.get(*reader)));
    }
}

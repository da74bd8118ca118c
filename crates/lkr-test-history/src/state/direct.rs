//! Anomalies that a read or a refused step shows by itself.

use crate::{Anomaly, AnomalyKind, Expect, Operation, Outcome};

use super::observed::{Observed, Register};

/// Reports reads of replaced records, and conflicts without a reason.
pub(super) fn check(observed: &Observed<'_>, anomalies: &mut Vec<Anomaly>) {
    for (key, register) in observed.keys.iter().zip(&observed.registers) {
        stale_reads(observed, key, register, anomalies);
    }
    let conflicts = observed.operations.iter().filter(|operation| operation.outcome == Outcome::Conflict);
    for operation in conflicts {
        if operation
            .writes()
            .iter()
            .all(|write| held_throughout(observed, &write.key, write.expect, operation))
        {
            let detail = "every expectation held while the step was refused";
            anomalies.push(Anomaly::new(AnomalyKind::ConflictWithoutReason, detail, [operation]));
        }
    }
}

/// A read is stale if a write lies between it and the writer of what it read, in real time.
fn stale_reads(observed: &Observed<'_>, key: &str, register: &Register, anomalies: &mut Vec<Anomaly>) {
    let deletes = register.deletes.iter().map(|(delete, _)| delete);
    let applied = register.puts.iter().chain(deletes).filter(|write| observed.has_happened(**write));
    let mut writes: Vec<(u64, usize)> = applied.map(|write| (observed.end(*write), *write)).collect();
    writes.sort_unstable();
    // The latest start among the writes up to each one.
    let mut latest: Vec<usize> = Vec::with_capacity(writes.len());
    for (_, write) in &writes {
        let last = latest.last().copied().unwrap_or(*write);
        latest.push(if observed.start(last) > observed.start(*write) { last } else { *write });
    }
    for (version, readers) in &register.readers {
        let Some(Some(writer)) = register.versions.get(version) else { continue };
        for reader in readers {
            let before = writes.partition_point(|(end, _)| *end < observed.start(*reader));
            let Some(between) = before.checked_sub(1).and_then(|last| latest.get(last)) else { continue };
            if observed.start(*between) > observed.end(*writer) {
                let detail = format!("version {version} of {key} was read after it had been replaced");
                let shown = [writer, between, reader];
                let shown = shown.into_iter().filter_map(|number| observed.operations.get(*number));
                anomalies.push(Anomaly::new(AnomalyKind::StaleRead, detail, shown));
            }
        }
    }
}

/// Whether the expectation certainly held during the whole operation. That a key was absent is certain only before its
/// first write.
fn held_throughout(observed: &Observed<'_>, key: &str, expect: Expect, operation: &Operation) -> bool {
    let Some(register) = observed.register_of(key) else { return expect != Expect::Absent };
    match expect {
        Expect::Any => true,
        Expect::Absent => register.puts.iter().all(|put| observed.start(*put) > operation.latest()),
        Expect::Version(version) => {
            let readers = register.readers.get(&version).map(Vec::as_slice).unwrap_or_default();
            let writer = register.versions.get(&version).copied().flatten();
            let was_there =
                readers.iter().copied().chain(writer).any(|seen| observed.end(seen) < operation.start);
            was_there && readers.iter().any(|reader| observed.start(*reader) > operation.latest())
        }
    }
}

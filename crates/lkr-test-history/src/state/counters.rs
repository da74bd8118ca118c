//! Keys that are only incremented: a count lies between the increments that were acknowledged before the read began and those
//! that had begun when it ended.

use std::collections::{BTreeMap, HashMap};

use crate::{Anomaly, AnomalyKind, Change, Operation, Outcome};

use super::observed;

/// The times of the increments of a counter.
#[derive(Default)]
struct Increments {
    starts: Vec<u64>,
    ends: Vec<u64>,
}

/// Checks every read of a counter.
pub(super) fn check(history: &[Operation], anomalies: &mut Vec<Anomaly>) {
    let mut counters: HashMap<&str, Increments> = HashMap::new();
    for operation in history.iter().filter(|operation| operation.may_have_happened()) {
        for write in operation.writes().iter().filter(|write| write.change == Change::Increment) {
            let times = counters.entry(&write.key).or_default();
            times.starts.push(operation.start);
            times.ends.extend(operation.end);
        }
    }
    counters.values_mut().for_each(|times| {
        times.starts.sort_unstable();
        times.ends.sort_unstable();
    });
    let names = observed::counters(history);
    let none = Increments::default();
    let mut versions: HashMap<&str, BTreeMap<u64, (u64, &Operation)>> = HashMap::new();
    for operation in history.iter().filter(|operation| matches!(operation.outcome, Outcome::Found(_))) {
        for (key, found) in operation.found().filter(|(key, _)| names.contains(key)) {
            let times = counters.get(key).unwrap_or(&none);
            let Some(count) = found.map_or(Some(0), |seen| seen.value.parse().ok()) else {
                let detail = format!("the counter {key} is no number");
                anomalies.push(Anomaly::new(AnomalyKind::UnwrittenValue, detail, [operation]));
                continue;
            };
            anomalies.extend(outside(key, count, times, operation));
            if let Some(seen) = found {
                let (earlier, other) =
                    *versions.entry(key).or_default().entry(seen.version).or_insert((count, operation));
                if earlier != count {
                    let detail = format!("version {} of {key} is both {earlier} and {count}", seen.version);
                    let shown = [other, operation];
                    anomalies.push(Anomaly::new(AnomalyKind::VersionRepeated, detail, shown));
                }
            }
        }
    }
    for (key, seen) in versions {
        let pairs = seen.iter().zip(seen.iter().skip(1));
        for ((version, (count, first)), (later, (next, second))) in pairs {
            if next <= count {
                let detail = format!("{key} is {count} in version {version} and {next} in version {later}");
                anomalies.push(Anomaly::new(AnomalyKind::LostWrite, detail, [*first, *second]));
            }
        }
    }
}

fn outside(key: &str, count: u64, times: &Increments, read: &Operation) -> Option<Anomaly> {
    let (certain, possible) = (
        times.ends.partition_point(|end| *end < read.start) as u64,
        times.starts.partition_point(|start| *start <= read.latest()) as u64,
    );
    let kind = match count {
        low if low < certain => AnomalyKind::LostWrite,
        high if high > possible => AnomalyKind::AppliedTwice,
        _ => return None,
    };
    let detail = format!("the counter {key} is {count}, and must be {certain} to {possible}");
    Some(Anomaly::new(kind, detail, [read]))
}

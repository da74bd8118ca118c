//! Whether the steps and reads of a store were strictly serializable.

mod counters;
mod direct;
mod observed;
mod order;

use crate::{Anomaly, AnomalyKind, Operation, Outcome, graph::Graph};

/// The number of cycles that are reported.
const MOST_CYCLES: usize = 10;

/// Checks the steps and reads of a history that began with an empty store; other operations are ignored.
///
/// An empty answer means that the history has none of the anomalies that this crate's page lists. It is not a proof of
/// strict serializability: writes that no read saw have no known place.
#[must_use]
pub fn check_state(history: &[Operation]) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    let observed = observed::collect(history, &mut anomalies);
    let absences = order::resolve_absences(observed, &mut anomalies);
    direct::check(&absences.observed, &mut anomalies);
    counters::check(history, &mut anomalies);
    let mut graph = Graph::new(history.len());
    order::add_versions(&absences, &mut graph);
    let (operations, happened) = (history, &absences.observed.happened);
    let takes_part = |number: usize| {
        let answered = operations.get(number).is_some_and(|o| matches!(o.outcome, Outcome::Found(_)));
        answered || happened.get(number) == Some(&true)
    };
    graph.add_real_time(history, takes_part);
    for cycle in graph.cycles().into_iter().take(MOST_CYCLES) {
        let detail = describe(&cycle, &absences.observed.keys);
        let members = cycle.iter().filter_map(|(number, _)| history.get(*number));
        anomalies.push(Anomaly::new(AnomalyKind::Cycle, detail, members));
    }
    let failed = history.iter().filter(|operation| matches!(operation.outcome, Outcome::Failed(_)));
    anomalies.extend(failed.map(|operation| {
        Anomaly::new(AnomalyKind::UnexpectedFailure, "the call must not fail like this", [operation])
    }));
    anomalies
}

/// The reasons in a cycle, in its order.
fn describe(cycle: &[(usize, crate::graph::Reason)], keys: &[&str]) -> String {
    let reasons = cycle.iter().map(|(_, reason)| match reason.key().and_then(|key| keys.get(key)) {
        Some(key) => format!("{reason} {key}"),
        None => reason.to_string(),
    });
    reasons.collect::<Vec<_>>().join("; ")
}

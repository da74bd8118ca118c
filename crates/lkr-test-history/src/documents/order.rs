//! The search for an order, as Lowe's just-in-time linearization does it (*Testing for linearizability*, 2017).
//!
//! The starts and ends of all events are gone through by time. A configuration is a state that a correct service may be in, with
//! the events that took effect and have not ended. When an event ends, each configuration is extended by orders of the open events
//! until the ended one has taken effect. If no configuration is left, no order explains the history until then.

use std::collections::{BTreeSet, HashSet};

use super::{
    DocumentOperation,
    events::{Event, events},
    state::State,
};
use crate::{Finding, FindingKind};

/// The operations before the one that has no place in any order that are shown.
const SHOWN: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Configuration<'a> {
    state: State<'a>,
    /// The open events that took effect, by number.
    done: BTreeSet<usize>,
}

/// The first operation at which every order fails.
pub(super) fn check(operations: &[&DocumentOperation]) -> Option<Finding> {
    let events = events(operations);
    let mut moments: Vec<(u64, bool, usize)> = Vec::new();
    for (number, event) in events.iter().enumerate() {
        moments.push((event.start, false, number));
        // What starts in the nanosecond of an end counts as overlapping.
        moments.extend(event.end.map(|end| (end, true, number)));
    }
    moments.sort_unstable();
    let mut open = BTreeSet::new();
    let mut configurations =
        HashSet::from([Configuration { state: State::default(), done: BTreeSet::new() }]);
    for (_, is_end, number) in moments {
        if !is_end {
            open.insert(number);
            let starting = configurations.into_iter();
            configurations = starting.map(|configuration| read(configuration, &open, &events)).collect();
            continue;
        }
        let ending = configurations.drain().collect();
        configurations = extend(ending, number, &open, &events);
        open.remove(&number);
        if configurations.is_empty() {
            return events.get(number).map(|event| finding(event.operation, operations));
        }
    }
    None
}

/// The configurations in which an event has taken effect.
fn extend<'a>(
    from: Vec<Configuration<'a>>,
    ended: usize,
    open: &BTreeSet<usize>,
    events: &[Event<'a>],
) -> HashSet<Configuration<'a>> {
    let (mut after, mut met, mut left) = (HashSet::new(), HashSet::new(), from);
    while let Some(mut configuration) = left.pop() {
        if configuration.done.remove(&ended) {
            after.insert(configuration);
            continue;
        }
        if !met.insert(configuration.clone()) {
            continue;
        }
        let writes =
            open.difference(&configuration.done).filter_map(|number| Some((*number, events.get(*number)?)));
        for (number, event) in writes.filter(|(_, event)| event.effect.is_write()) {
            let Some(state) = configuration.state.after(event.effect) else { continue };
            // A write that may never happen and changes nothing need not happen.
            if event.end.is_none() && state == configuration.state {
                continue;
            }
            let mut done = configuration.done.clone();
            done.insert(number);
            left.push(read(Configuration { state, done }, open, events));
        }
    }
    after
}

/// Lets all open reads take effect that fit the state. That excludes nothing, because reads change nothing.
fn read<'a>(
    mut configuration: Configuration<'a>,
    open: &BTreeSet<usize>,
    events: &[Event<'a>],
) -> Configuration<'a> {
    let fits =
        |number: &&usize| events.get(**number).is_some_and(|event| configuration.state.shows(event.effect));
    let reads: Vec<usize> = open.iter().filter(fits).copied().collect();
    configuration.done.extend(reads);
    configuration
}

fn finding(at: &DocumentOperation, operations: &[&DocumentOperation]) -> Finding {
    let mut before: Vec<&&DocumentOperation> =
        operations.iter().filter(|operation| Some(operation.start) <= at.end).collect();
    before.sort_by_key(|operation| operation.end.unwrap_or(u64::MAX));
    let end = at.end.unwrap_or(u64::MAX);
    let last = before.iter().rposition(|operation| operation.end.is_some_and(|e| e <= end)).unwrap_or(0);
    let shown: Vec<String> = before
        .iter()
        .enumerate()
        .filter(|(place, operation)| place + SHOWN > last || operation.end.is_none())
        .map(|(_, operation)| format!("\n    {operation}"))
        .collect();
    let detail = format!("no order explains {at}\n  after{}", shown.concat());
    Finding::new(FindingKind::NoOrder, detail)
}

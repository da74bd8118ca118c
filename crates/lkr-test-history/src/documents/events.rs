//! The moments at which requests take effect.

use std::collections::BTreeSet;

use super::{Answer, DocumentCall, DocumentOperation, Ended, Shown};

/// What takes effect at one moment between `start` and `end`. An upsert is two: its acceptance, and its publication.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    pub(crate) start: u64,
    /// `None` if it may take effect at any later time, or never.
    pub(crate) end: Option<u64>,
    pub(crate) effect: Effect<'a>,
    pub(crate) operation: &'a DocumentOperation,
}

/// What an event changes or shows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effect<'a> {
    Accept {
        doc: &'a str,
        write: u64,
    },
    Publish {
        write: u64,
    },
    Retitle {
        doc: &'a str,
        write: u64,
    },
    /// The document was not there to be changed.
    Missing {
        doc: &'a str,
    },
    Delete {
        doc: &'a str,
    },
    Get {
        doc: &'a str,
        found: Option<&'a Shown>,
    },
    Find {
        found: Option<&'a Shown>,
    },
}

impl Effect<'_> {
    pub(crate) const fn is_write(&self) -> bool {
        matches!(
            self,
            Self::Accept { .. } | Self::Publish { .. } | Self::Retitle { .. } | Self::Delete { .. }
        )
    }
}

/// The events of the operations on a source.
pub(crate) fn events<'a>(operations: &[&'a DocumentOperation]) -> Vec<Event<'a>> {
    let shown = operations.iter().flat_map(|operation| operation.shown());
    let titles: BTreeSet<u64> = shown.filter_map(|shown| shown.title).collect();
    operations.iter().flat_map(|operation| of_operation(operation, &titles)).collect()
}

/// `titles` are the writes whose title was shown. A change whose title nobody saw, and whose outcome is unknown, explains nothing.
fn of_operation<'a>(operation: &'a DocumentOperation, titles: &BTreeSet<u64>) -> Vec<Event<'a>> {
    let event = |end, effect| Event { start: operation.start, end, effect, operation };
    match &operation.call {
        DocumentCall::Upsert { write, doc, accepted, ended } => {
            let accept = event(Some(*accepted), Effect::Accept { doc, write: *write });
            let publish = event(operation.end, Effect::Publish { write: *write });
            match ended {
                Ended::Done => vec![accept, publish],
                Ended::Unknown => vec![accept, Event { end: None, ..publish }],
                Ended::Cancelled => vec![accept],
            }
        }
        DocumentCall::Retitle { doc, write, answer } => match answer {
            Answer::Done => vec![event(operation.end, Effect::Retitle { doc, write: *write })],
            Answer::Refused => vec![event(operation.end, Effect::Missing { doc })],
            Answer::Unknown if titles.contains(write) => {
                vec![event(None, Effect::Retitle { doc, write: *write })]
            }
            Answer::Unknown => Vec::new(),
        },
        DocumentCall::Delete { doc, answer } => match answer {
            Answer::Done => vec![event(operation.end, Effect::Delete { doc })],
            Answer::Refused => Vec::new(),
            Answer::Unknown => vec![event(None, Effect::Delete { doc })],
        },
        DocumentCall::Get { doc, found } => {
            vec![event(operation.end, Effect::Get { doc, found: found.as_ref() })]
        }
        DocumentCall::Find { found } => vec![event(operation.end, Effect::Find { found: found.first() })],
    }
}

use std::{fmt, sync::Arc};

use lkr_catalog::{Outbox, Task};
use lkr_domain::{DocId, EventId};
use lkr_state::{Expect, Write};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{
    EventKind,
    clock::{moment, now_ms},
    known::Known,
    records::{EventV1, encode, event_key},
};

/// How a task is shown to receivers.
pub type ShowTask = fn(&Task) -> Value;

/// The largest body that is written into the step of what it tells; a larger one tells of the task only which it is.
/// A store takes records of 1 MiB, and no task may be kept from ending by what there is to tell of it.
const MOST_BYTES: usize = 256 * 1024;

/// Writes what happens down, in the very step in which it does, for whoever delivers it. Cheap to clone.
///
/// Nothing is written of what no webhook wants to hear. It is given to a knowledge base before the webhooks are
/// [opened](crate::Webhooks::open): until then, everything is written down. Whoever gives one to a knowledge base has to
/// [start](crate::Webhooks::start) a deliverer too, which takes away what was written.
#[derive(Clone)]
pub struct EventOutbox {
    pub(crate) known: Arc<Known>,
    pub(crate) is_shared: bool,
    show: ShowTask,
}

impl EventOutbox {
    /// An outbox that shows tasks by `show`.
    #[must_use]
    pub fn new(show: ShowTask) -> Self {
        Self { known: Arc::default(), is_shared: false, show }
    }

    /// The same for a store that other processes write to as well. They may make a webhook that this one does not know
    /// of yet, so that everything is written down always.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    fn write(&self, kind: EventKind, at: OffsetDateTime, data: &Value, short: &Value) -> Vec<Write> {
        let body = |data| json!({ "event": kind.name(), "at": moment(at), "data": data }).to_string();
        let mut told = body(data);
        if told.len() > MOST_BYTES {
            told = body(short);
        }
        let event = EventV1 { kind: kind.name().to_owned(), at_ms: now_ms(), body: told };
        // Writing texts and numbers as JSON does not fail.
        let record = encode(event).inspect_err(|error| tracing::error!(%error, "an event is not told"));
        record
            .map(|record| vec![Write::put(event_key(EventId::new()), Expect::Absent, record)])
            .unwrap_or_default()
    }

    fn wants(&self, kind: EventKind) -> bool {
        self.is_shared || self.known.wants(kind)
    }
}

impl Outbox for EventOutbox {
    fn task_ended(&self, task: &Task) -> Vec<Write> {
        let Some(kind) = EventKind::of_end(task.status).filter(|&kind| self.wants(kind)) else {
            return Vec::new();
        };
        let short = json!({
            "task_id": task.task_id, "doc_id": task.subject.doc_id(),
            "kind": task.kind.name(), "status": task.status.name(),
        });
        self.write(kind, task.updated_at, &(self.show)(task), &short)
    }

    fn document_deleted(&self, doc_id: DocId) -> Vec<Write> {
        let kind = EventKind::DocumentDeleted;
        if !self.wants(kind) {
            return Vec::new();
        }
        let data = json!({ "doc_id": doc_id });
        self.write(kind, OffsetDateTime::now_utc(), &data, &data)
    }
}

impl fmt::Debug for EventOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventOutbox").field("known", &self.known).finish_non_exhaustive()
    }
}

use std::{fmt, sync::Arc};

use lkr_catalog::{Outbox, Task};
use lkr_domain::{DocId, EventId, SpaceName};
use lkr_state::{Expect, Write};
use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::{
    EventKind,
    clock::{in_ms, rfc3339},
    records::{EventV1, encode, event_key},
    subscriptions::Subscriptions,
};

/// Renders a task as receivers get it.
pub type RenderTask = fn(&Task) -> Value;

/// The largest body of an event, in bytes. A larger one is replaced by a short body that only identifies the task. The
/// event is part of the step that ends the task, and a store takes records of at most 1 MiB: a long body must not keep a
/// task from ending.
const MAX_BODY_BYTES: usize = 256 * 1024;

/// Writes each event in the same step as the change that it reports. Cheap to clone.
///
/// Events of a kind that no webhook subscribes to are not written. Give the outbox to a knowledge base before the
/// webhooks are [opened](crate::Webhooks::open); until then, every event is written. A program that uses an outbox must
/// also [start](crate::Webhooks::start) a deliverer, which removes the events.
#[derive(Clone)]
pub struct EventOutbox {
    pub(crate) subscriptions: Arc<Subscriptions>,
    pub(crate) is_shared: bool,
    render: RenderTask,
}

/// What happened, where and when.
struct Event<'a> {
    kind: EventKind,
    /// `None` if it concerns all spaces.
    space: Option<&'a SpaceName>,
    at: OffsetDateTime,
}

impl EventOutbox {
    /// An outbox that renders tasks with `render`.
    #[must_use]
    pub fn new(render: RenderTask) -> Self {
        Self { subscriptions: Arc::default(), is_shared: false, render }
    }

    /// The same outbox for a store that other processes write to. It writes every event, because another process may
    /// have created a webhook that this process has not read yet.
    #[must_use]
    pub fn shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    fn write(&self, event: &Event<'_>, data: &Value, short_data: &Value) -> Vec<Write> {
        let Event { kind, space, at } = *event;
        let render = |data| json!({ "event": kind.name(), "at": rfc3339(at), "data": data }).to_string();
        let mut body = render(data);
        if body.len() > MAX_BODY_BYTES {
            body = render(short_data);
        }
        let event = EventV1 { kind: kind.name().to_owned(), at_ms: in_ms(at), space: space.cloned(), body };
        // Encoding strings and numbers as JSON does not fail.
        let record =
            encode(event).inspect_err(|error| tracing::error!(%error, "webhook event not encoded; dropped"));
        record
            .map(|record| vec![Write::put(event_key(EventId::new()), Expect::Absent, record)])
            .unwrap_or_default()
    }

    fn is_subscribed(&self, kind: EventKind) -> bool {
        self.is_shared || self.subscriptions.contains(kind)
    }
}

impl Outbox for EventOutbox {
    fn task_ended(&self, task: &Task) -> Vec<Write> {
        let Some(kind) = EventKind::for_status(task.status).filter(|&kind| self.is_subscribed(kind)) else {
            return Vec::new();
        };
        let short_data = json!({
            "task_id": task.task_id, "doc_id": task.subject.doc_id(),
            "kind": task.kind.name(), "status": task.status.name(),
        });
        let event = Event { kind, space: task.space.as_ref(), at: task.updated_at };
        self.write(&event, &(self.render)(task), &short_data)
    }

    fn document_deleted(&self, doc_id: DocId, space: &SpaceName, at: OffsetDateTime) -> Vec<Write> {
        let kind = EventKind::DocumentDeleted;
        if !self.is_subscribed(kind) {
            return Vec::new();
        }
        let data = json!({ "doc_id": doc_id });
        let event = Event { kind, space: Some(space), at };
        self.write(&event, &data, &data)
    }
}

impl fmt::Debug for EventOutbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventOutbox").field("subscriptions", &self.subscriptions).finish_non_exhaustive()
    }
}

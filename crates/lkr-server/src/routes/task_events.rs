//! Watching all tasks that the caller may read.

use std::time::Duration;

use actix_web::{
    http::Method,
    web::{Bytes, Data},
};
use futures_util::{Stream, stream};
use lkr::Scope;
use tokio::{
    sync::broadcast::Receiver,
    time::{Instant, sleep},
};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        Endpoint, HandlerResult, KEEP_ALIVE, KEEP_ALIVE_INTERVAL, QuotaShare, Reader, RequestContext, Rights,
        StreamSubject, rendered_while_permitted, sse_response,
    },
    openapi::{OperationDoc, ResponseShape},
    state::AppState,
    task_feed::{self, TaskBatch, TaskEvent, TaskFeed},
};

/// How often a stream without events looks whether a keep-alive is due.
const TICK: Duration = Duration::from_secs(5);

/// The unfinished tasks that are read at once.
const PAGE: usize = 100;

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = OperationDoc::new(
        "Tasks",
        "watch_tasks",
        "Streams server-sent events named `task`: the unfinished tasks that the caller may read, and each task that changes, \
         as it is then",
        ResponseShape::Raw("text/event-stream"),
    );
    vec![Endpoint::new(
        Method::GET,
        "/api/v1/documents/tasks/events",
        doc.query_space("Only tasks of this space.").errors(&[ErrorCode::NotFound, ErrorCode::Overloaded]),
        watch_all,
    )]
}

async fn watch_all(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let space = query.space()?;
    query.finish()?;
    let rights = cx.rights(reader.0.as_ref()).await?;
    let scope = space.map(|space| rights.scope(Some(&space))).transpose()?;
    let state = cx.state_data();
    let mut share = state.watcher_quota.share(cx.client().clone());
    if !share.grow_to(1) {
        return Err(ApiError::new(ErrorCode::Overloaded, "too many clients watch tasks"));
    }
    // The subscription comes first, so that no change is lost between the unfinished tasks and it.
    let changes = TaskFeed::subscribe(&state, &cx.services()?.kb);
    let watcher = Watcher { _share: share, state, changes, unfinished: Unfinished::first(&cx).await? };
    let subject = scope.clone().map_or(StreamSubject::Service, StreamSubject::Spaces);
    let mut events = Events { scope, last_sent: None };
    let render = move |batch: TaskBatch, rights: &Rights| events.render(&batch, rights).map(Ok);
    Ok(sse_response(rendered_while_permitted(cx, subject, watcher.batches(), render)))
}

/// The unfinished tasks that were not sent yet.
struct Unfinished {
    first: Option<TaskBatch>,
    /// Where the next page begins.
    next: Option<String>,
}

impl Unfinished {
    /// The first page, so that a store that fails refuses the request.
    async fn first(cx: &RequestContext) -> Result<Self, ApiError> {
        let (tasks, next) = cx.services()?.kb.unfinished_tasks(None, PAGE).await.for_read()?;
        Ok(Self { first: Some(task_feed::batch(tasks)), next })
    }
}

/// A client that watches all tasks.
struct Watcher {
    _share: QuotaShare,
    state: Data<AppState>,
    changes: Receiver<TaskBatch>,
    unfinished: Unfinished,
}

impl Watcher {
    fn batches(self) -> impl Stream<Item = TaskBatch> + 'static {
        stream::unfold(self, |mut watcher| async move {
            let batch = watcher.next_batch().await?;
            Some((batch, watcher))
        })
    }

    /// The next tasks; `None` when the service stops, and if changes may be missing: a client that connects again gets the
    /// unfinished tasks again.
    async fn next_batch(&mut self) -> Option<TaskBatch> {
        if self.state.is_stopping() {
            return None;
        }
        if let Some(page) = self.unfinished.first.take() {
            return Some(page);
        }
        if let Some(next) = self.unfinished.next.take() {
            let (tasks, next) =
                self.state.services().ok()?.kb.unfinished_tasks(Some(&next), PAGE).await.ok()?;
            self.unfinished.next = next;
            return Some(task_feed::batch(tasks));
        }
        next_changes(&mut self.changes).await
    }
}

/// The next changes, none after each [`TICK`] without; `None` after their end, and for a watcher that is too far behind.
async fn next_changes(changes: &mut Receiver<TaskBatch>) -> Option<TaskBatch> {
    tokio::select! {
        batch = changes.recv() => batch.ok(),
        () = sleep(TICK) => Some(TaskBatch::default()),
    }
}

/// What a client gets of the batches.
struct Events {
    /// The spaces that the client asks for; `None` for all tasks.
    scope: Option<Scope>,
    last_sent: Option<Instant>,
}

impl Events {
    /// The events of the tasks that the caller may read, or a keep-alive when one is due.
    fn render(&mut self, batch: &[TaskEvent], rights: &Rights) -> Option<Bytes> {
        let is_named = |space: Option<&lkr::SpaceName>| {
            self.scope.as_ref().is_none_or(|scope| space.is_some_and(|space| scope.contains(space)))
        };
        let shown = batch
            .iter()
            .filter(|event| is_named(event.task.space.as_ref()) && rights.may_read_task(&event.task));
        let events: Vec<&[u8]> = shown.map(|event| &*event.event).collect();
        // The next look may come after another tick. A first keep-alive tells the client that it is connected.
        let is_alive = self.last_sent.is_some_and(|sent| sent.elapsed() + TICK < KEEP_ALIVE_INTERVAL);
        if events.is_empty() && is_alive {
            return None;
        }
        self.last_sent = Some(Instant::now());
        if events.is_empty() { Some(KEEP_ALIVE) } else { Some(Bytes::from(events.concat())) }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast;

    use super::*;

    #[tokio::test]
    async fn stream_that_is_too_far_behind_ends() {
        let (sender, mut changes) = broadcast::channel(2);
        for behind in [2, 3] {
            for _ in 0..behind {
                sender.send(TaskBatch::default()).unwrap();
            }
            let first = next_changes(&mut changes).await;
            assert_eq!(first.is_some(), behind == 2, "{behind}");
            let _ = next_changes(&mut changes).await;
        }
    }
}

//! Listing, watching, cancelling and retrying tasks.

use std::time::{Duration, Instant};

use actix_web::{
    http::{Method, StatusCode},
    web::{Bytes, Data},
};
use futures_util::stream;
use lkr::{Document, Task, TaskId};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        ApiResponse, Endpoint, HandlerResult, KEEP_ALIVE, KEEP_ALIVE_INTERVAL, QuotaShare, Reader, Recheck,
        RequestContext, StreamSubject, TaskOwner, cursor, sse_event, sse_response, unknown_task,
        while_permitted,
    },
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    state::AppState,
    wire::tasks::{DeletedTask, TaskItem, TaskList},
};

/// How often a watched task is read.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Tasks", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks",
            doc("list_tasks", "Lists tasks, newest first", schema::<TaskList>())
                .query_choice(
                    "status",
                    "Only tasks with this status.",
                    ["pending", "running", "done", "failed"],
                )
                .query_space("Only tasks of this space.")
                .errors(&[ErrorCode::NotFound])
                .paged('t', CursorOf::Id),
            list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks/{task_id}",
            doc("get_task", "Returns a task", schema::<TaskItem>()).errors(&[ErrorCode::NotFound]),
            get,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/tasks/{task_id}",
            doc(
                "delete_task",
                "Deletes the record of a task that has ended, and what a failed task kept for a retry",
                schema::<DeletedTask>(),
            )
            .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            delete,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/tasks/{task_id}/cancel",
            doc("cancel_task", "Cancels a task and removes everything that it made", schema::<TaskItem>())
                .status(StatusCode::ACCEPTED)
                .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            cancel,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/tasks/{task_id}/retry",
            doc("retry_task", "Retries a failed task from the stage where it failed", schema::<TaskItem>())
                .status(StatusCode::ACCEPTED)
                .errors(&[ErrorCode::NotFound, ErrorCode::Conflict]),
            retry,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks/{task_id}/events",
            OperationDoc::new(
                "Tasks",
                "watch_task",
                "Streams server-sent events named `task`: the task now and after each change, until it ends",
                ResponseShape::Raw("text/event-stream"),
            )
            .errors(&[ErrorCode::NotFound, ErrorCode::Overloaded]),
            watch,
        ),
    ]
}

async fn list(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('t')?);
    let status = query.parsed("status", "pending, running, done or failed", |text| text.parse().ok())?;
    let space = query.space()?;
    query.finish()?;
    let rights = cx.rights(reader.0.as_ref()).await?;
    let scope = space.map(|space| rights.scope(Some(&space))).transpose()?;
    let lists = rights.task_lists(scope.as_ref());
    let keep = |task: &Task| {
        scope.as_ref().is_none_or(|scope| task.space.as_ref().is_some_and(|space| scope.contains(space)))
            && rights.may_read_task(task)
    };
    let kb = &cx.services()?.kb;
    let page = kb.tasks_with_status(&lists, status, keep, after, limit as usize).await.for_read()?;
    ApiResponse::ok(&TaskList::new(page.items, page.next.map(|id| cursor('t', id))))
}

async fn get(reader: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    ApiResponse::ok(&TaskItem::from(readable_task(&reader, &cx).await?))
}

/// The task that the path names, if it exists for the caller.
async fn readable_task(reader: &Reader, cx: &RequestContext) -> Result<Task, ApiError> {
    let rights = cx.rights(reader.0.as_ref()).await?;
    let task = cx.services()?.kb.task_in(&rights.task_lists(None), cx.task_id()?).await.for_read()?;
    task.filter(|task| rights.may_read_task(task)).ok_or_else(unknown_task)
}

async fn delete(owner: TaskOwner, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let task = cx.services()?.kb.delete_task(owner.task_id()?).await.for_write()?.ok_or_else(unknown_task)?;
    ApiResponse::ok(&DeletedTask { task_id: task.task_id, deleted: true })
}

async fn cancel(owner: TaskOwner, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let task = cx.services()?.kb.cancel(owner.task_id()?).await.for_write()?;
    ApiResponse::accepted(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

async fn retry(owner: TaskOwner, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let (kb, task_id) = (&cx.services()?.kb, owner.task_id()?);
    let task = kb.task(task_id).await.for_write()?.ok_or_else(unknown_task)?;
    // The document may have been moved since, to a space where the caller has no such right.
    if let Some(doc_id) = task.subject.doc_id()
        && let Some(Document { space, created_by, .. }) = kb.document(doc_id).await.for_write()?
    {
        let rights = cx.rights_to_write(Some(&owner.caller)).await?;
        if !rights.may_read(&space) {
            return Err(unknown_task());
        }
        if !rights.may_change(&space, &created_by) {
            return Err(rights.change_refused("document", &space, &created_by));
        }
    }
    let task = kb.retry(task_id).await.for_write()?;
    ApiResponse::accepted(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

async fn watch(reader: Reader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let task = readable_task(&reader, &cx).await?;
    let subject = StreamSubject::Task(Box::new(task.clone()));
    let state = cx.state_data();
    let mut share = state.watcher_quota.share(cx.client().clone());
    if !share.grow_to(1) {
        return Err(ApiError::new(ErrorCode::Overloaded, "too many clients watch tasks"));
    }
    let watcher = TaskWatcher {
        _share: share,
        state,
        task_id: task.task_id,
        first: Some(task),
        last_event: None,
        last_sent: Instant::now(),
        has_ended: false,
    };
    let events = stream::unfold(watcher, |mut watcher| async move {
        let event = watcher.next_event().await?;
        Some((Ok(event), watcher))
    });
    Ok(sse_response(while_permitted(cx, (subject, Recheck::EachItem), events, || None)))
}

/// A client that watches a task.
struct TaskWatcher {
    _share: QuotaShare,
    state: Data<AppState>,
    task_id: TaskId,
    /// The task at the time of the request, until its event is sent.
    first: Option<Task>,
    last_event: Option<Bytes>,
    last_sent: Instant,
    has_ended: bool,
}

impl TaskWatcher {
    /// The next event or keep-alive; `None` after the end of the task and when the service stops.
    async fn next_event(&mut self) -> Option<Bytes> {
        loop {
            let task = match self.first.take() {
                Some(task) => task,
                None => self.poll_task().await?,
            };
            self.has_ended = task.status.has_ended();
            let event = sse_event("task", &TaskItem::from(task)).ok()?;
            let is_new = self.last_event.as_ref() != Some(&event);
            if !is_new && self.last_sent.elapsed() < KEEP_ALIVE_INTERVAL {
                continue;
            }
            self.last_sent = Instant::now();
            if !is_new {
                return Some(KEEP_ALIVE);
            }
            self.last_event = Some(event.clone());
            return Some(event);
        }
    }

    /// Reads the task after the poll interval.
    async fn poll_task(&self) -> Option<Task> {
        if self.has_ended || self.state.is_stopping() {
            return None;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
        // A store that is unavailable for a moment does not end the stream: the client sees no change.
        loop {
            match self.state.services().ok()?.kb.task(self.task_id).await {
                Ok(task) => return task,
                Err(error) if self.state.is_stopping() || !error.is_retryable() => return None,
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }
}

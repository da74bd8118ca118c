use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use actix_web::{
    http::{Method, StatusCode},
    web::{Bytes, Data},
};
use futures_util::stream;
use lkr::{Task, TaskId};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    error::{ApiError, Code, Failing},
    http::{self, Answer, Cx, Endpoint, KEEP_ALIVE, Reader, Reply, TaskOwner, cursor, event, unknown_task},
    openapi::{Doc, Shape, schema},
    state::AppState,
    wire::tasks::{DeletedTask, TaskItem, TaskList},
};

/// How often a task is looked at that somebody watches.
const LOOK: Duration = Duration::from_millis(200);

/// After how long a sign of life is sent where nothing changes.
const STILL: Duration = Duration::from_secs(15);

pub(super) fn rows() -> Vec<Endpoint> {
    let doc = |id, summary, shape| Doc::new("Tasks", id, summary, Shape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks",
            doc("list_tasks", "Lists tasks, the newest first", schema::<TaskList>())
                .text("status", "pending, running, done or failed.")
                .paged(),
            list,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks/{task_id}",
            doc("get_task", "A task", schema::<TaskItem>()).errors(&[Code::NotFound]),
            get,
        ),
        Endpoint::new(
            Method::DELETE,
            "/api/v1/documents/tasks/{task_id}",
            doc(
                "delete_task",
                "Forgets a task that has ended; what a failed one left for another try goes with it",
                schema::<DeletedTask>(),
            )
            .errors(&[Code::NotFound, Code::Conflict]),
            delete,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/tasks/{task_id}/cancel",
            doc("cancel_task", "Ends a task that is not wanted any more; nothing of it stays", schema::<TaskItem>())
                .status(StatusCode::ACCEPTED)
                .errors(&[Code::NotFound, Code::Conflict]),
            cancel,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/documents/tasks/{task_id}/retry",
            doc("retry_task", "Tries a failed task again, from where it failed", schema::<TaskItem>())
                .status(StatusCode::ACCEPTED)
                .errors(&[Code::NotFound, Code::Conflict]),
            retry,
        ),
        Endpoint::new(
            Method::GET,
            "/api/v1/documents/tasks/{task_id}/events",
            Doc::new(
                "Tasks",
                "watch_task",
                "A task as server-sent events: `task` with the task now and whenever it changes, until it ends",
                Shape::Bare("text/event-stream"),
            )
            .errors(&[Code::NotFound, Code::Overloaded]),
            watch,
        ),
    ]
}

async fn list(_: Reader, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('t')?);
    let status = query.read("status", "pending, running, done or failed", |text| text.parse().ok())?;
    query.finish()?;
    let page = cx.services()?.kb.tasks(status, after, limit as usize).await.reading()?;
    Reply::ok(&TaskList::new(page.items, page.next.map(|id| cursor('t', id))))
}

async fn get(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let task = cx.services()?.kb.task(cx.task_id()?).await.reading()?;
    Reply::ok(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

async fn delete(_: TaskOwner, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let task = cx.services()?.kb.forget(cx.task_id()?).await.writing()?.ok_or_else(unknown_task)?;
    Reply::ok(&DeletedTask { task_id: task.task_id, deleted: true })
}

async fn cancel(_: TaskOwner, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let task = cx.services()?.kb.cancel(cx.task_id()?).await.writing()?;
    Reply::accepted(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

async fn retry(_: TaskOwner, mut cx: Cx) -> Answer {
    cx.no_body().await?;
    let task = cx.services()?.kb.retry(cx.task_id()?).await.writing()?;
    Reply::accepted(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

async fn watch(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let task = cx.services()?.kb.task(cx.task_id()?).await.reading()?.ok_or_else(unknown_task)?;
    let state = cx.state_data();
    let crowd = || ApiError::new(Code::Overloaded, "too many watch tasks");
    let watch = Watch {
        _watching: Arc::clone(&state.watchers).try_acquire_owned().map_err(|_| crowd())?,
        state,
        task_id: task.task_id,
        next: Some(task),
        last: None,
        told: Instant::now(),
        has_ended: false,
    };
    Ok(http::events(stream::unfold(watch, |mut watch| async move {
        let event = watch.event().await?;
        Some((Ok(event), watch))
    })))
}

/// A task that somebody watches.
struct Watch {
    _watching: OwnedSemaphorePermit,
    state: Data<AppState>,
    task_id: TaskId,
    /// How it stood when it was looked at first.
    next: Option<Task>,
    /// What was told of it last.
    last: Option<Bytes>,
    told: Instant,
    has_ended: bool,
}

impl Watch {
    /// What is to be told next; `None` after the end of the task, and where the service stops.
    async fn event(&mut self) -> Option<Bytes> {
        loop {
            let task = match self.next.take() {
                Some(task) => task,
                None => self.look().await?,
            };
            self.has_ended = task.status.has_ended();
            let event = event("task", &TaskItem::from(task)).ok()?;
            let is_new = self.last.as_ref() != Some(&event);
            if !is_new && self.told.elapsed() < STILL {
                continue;
            }
            self.told = Instant::now();
            if !is_new {
                return Some(KEEP_ALIVE);
            }
            self.last = Some(event.clone());
            return Some(event);
        }
    }

    /// Looks at the task after a while.
    async fn look(&self) -> Option<Task> {
        if self.has_ended || self.state.is_stopping() {
            return None;
        }
        tokio::time::sleep(LOOK).await;
        // A store that is away for a moment ends nothing: the client sees that nothing changes.
        loop {
            match self.state.services().ok()?.kb.task(self.task_id).await {
                Ok(task) => return task,
                Err(error) if self.state.is_stopping() || !error.is_retryable() => return None,
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

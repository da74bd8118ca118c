use actix_web::http::Method;

use crate::{
    error::{Code, Failing},
    http::{Answer, Cx, Endpoint, Reader, Reply, cursor, unknown_task},
    openapi::{Doc, Shape, schema},
    wire::tasks::{TaskItem, TaskList},
};

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

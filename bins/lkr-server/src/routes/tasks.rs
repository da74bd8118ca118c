use crate::{
    error::Failing,
    http::{Answer, Cx, Reader, Reply, cursor, unknown_task},
    wire::tasks::{TaskItem, TaskList},
};

pub(super) async fn list(_: Reader, cx: Cx) -> Answer {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()?, query.offset('t')?);
    let status = query.read("status", "pending, running, done or failed", |text| text.parse().ok())?;
    query.finish()?;
    let page = cx.services()?.kb.tasks(status, after, limit as usize).await.reading()?;
    Reply::ok(&TaskList::new(page.items, page.next.map(|id| cursor('t', id))))
}

pub(super) async fn get(_: Reader, cx: Cx) -> Answer {
    cx.no_query()?;
    let task = cx.services()?.kb.task(cx.task_id()?).await.reading()?;
    Reply::ok(&TaskItem::from(task.ok_or_else(unknown_task)?))
}

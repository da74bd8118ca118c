//! A custom outbox writes its events in the step that they report.

use std::sync::Arc;

use lkr::{
    Creator, DocId, DocumentChange, KnowledgeBase, NewDocument, SpaceName, Submission, Task,
    ports::{
        Outbox,
        state::{Expect, MemoryState, ScanOrder, StateStore, StateStoreExt, Write},
    },
};
use lkr_domain::{Clock, SystemClock};
use time::OffsetDateTime;
use uuid::Uuid;

/// Records each event once. A second record of an event would fail its step.
#[derive(Debug)]
struct OnceOutbox;

impl Outbox for OnceOutbox {
    fn task_ended(&self, task: &Task) -> Vec<Write> {
        let key = format!("event/{}/{}/{}", task.task_id, task.kind.name(), task.status.name());
        vec![Write::put(key, Expect::Absent, "")]
    }

    fn document_deleted(&self, doc_id: DocId, _: &SpaceName, at: OffsetDateTime) -> Vec<Write> {
        vec![Write::put(format!("event/{doc_id}/deleted"), Expect::Absent, at.unix_timestamp().to_string())]
    }
}

/// A clock that is an hour behind.
#[derive(Debug)]
struct Behind;

impl Clock for Behind {
    fn now(&self) -> OffsetDateTime {
        SystemClock.now() - time::Duration::HOUR
    }

    fn new_uuid(&self) -> Uuid {
        SystemClock.new_uuid()
    }
}

#[tokio::test]
async fn deletions_are_reported_with_the_time_of_the_clock_of_documents() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let builder = KnowledgeBase::builder().state(Arc::clone(&state)).outbox(Arc::new(OnceOutbox));
    let kb = builder.clock(Arc::new(Behind)).build().await.unwrap();
    let text = "The moon pulls the sea.".to_owned();
    let added = kb.add(NewDocument { text, ..NewDocument::default() }).await.unwrap();
    kb.delete(added.doc_id).await.unwrap();
    let event = state.get(&format!("event/{}/deleted", added.doc_id)).await.unwrap().unwrap();
    let at: i64 = std::str::from_utf8(&event.value).unwrap().parse().unwrap();
    let behind = OffsetDateTime::now_utc().unix_timestamp() - at;
    assert!((3_600..3_660).contains(&behind), "{behind}");
    kb.close().await;
}

#[tokio::test]
async fn outbox_receives_each_ended_task_and_delete_once() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let builder = KnowledgeBase::builder().state(Arc::clone(&state)).outbox(Arc::new(OnceOutbox));
    let kb = builder.build().await.unwrap();
    let document = |text: &str| NewDocument { text: text.to_owned(), ..NewDocument::default() };
    let added = kb.add(document("The moon pulls the sea.")).await.unwrap();
    assert_eq!(kb.add(document("The moon pulls the sea.")).await.unwrap().doc_id, added.doc_id);
    let replacement =
        kb.replace(added.doc_id, document("The sun helps."), Submission::default()).await.unwrap();
    let reclassification = kb.reclassify(None, &Creator::default()).await.unwrap();
    for task in [replacement.unwrap(), reclassification] {
        while !kb.task(task.task_id).await.unwrap().unwrap().status.has_ended() {
            tokio::task::yield_now().await;
        }
    }
    let change = DocumentChange { title: Some("Tides".to_owned()), ..DocumentChange::default() };
    kb.change(added.doc_id, change).await.unwrap();
    kb.delete(added.doc_id).await.unwrap();
    kb.delete(added.doc_id).await.unwrap();
    let events = state.scan("event/", None, ScanOrder::Ascending, 100).await.unwrap();
    let ends = |end: &str| events.iter().filter(|(key, _)| key.ends_with(end)).count();
    assert_eq!(
        (ends("/ingest/done"), ends("/replace/done"), ends("/reclassify/done")),
        (2, 1, 1),
        "{events:?}"
    );
    assert_eq!((ends("/deleted"), events.len()), (1, 5), "{events:?}");
    kb.close().await;
}

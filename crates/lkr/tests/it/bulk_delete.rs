//! Deleting the documents that match a filter.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use async_trait::async_trait;
use lkr::{
    BulkDelete, DocId, Document, FilterExpr, KnowledgeBase, ListFilter, Scope, SpaceName, Submission, Task,
    TaskResult, TaskStatus,
    ports::{
        DeletionPolicy,
        ingest::Result,
        state::{MemoryState, StateStore, Write},
    },
};
use lkr_domain::{Clock, SystemClock};
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    changes::category,
    common::{document, wait_for_task},
};

/// Changes the document that is judged first, before it permits every deletion.
#[derive(Debug, Default)]
struct ChangingPolicy {
    kb: OnceLock<KnowledgeBase>,
    judged: AtomicUsize,
}

#[async_trait]
impl DeletionPolicy for ChangingPolicy {
    async fn may_delete(&self, _: &Task, _: Option<&str>, document: &Document) -> Result<bool> {
        if self.judged.fetch_add(1, Ordering::SeqCst) == 0 {
            self.kb.get().unwrap().change(document.doc_id, category("kept")).await.unwrap();
        }
        Ok(true)
    }

    fn on_delete(&self, _: &Task, _: DocId) -> Result<Vec<Write>> {
        Ok(Vec::new())
    }
}

async fn add(kb: &KnowledgeBase, text: &str) -> DocId {
    let task = kb.submit(document(text, 2), Submission::by("eva".into())).await.unwrap();
    let doc_id = wait_for_task(kb, task.task_id).await.doc_id().unwrap();
    kb.change(doc_id, category("old")).await.unwrap();
    doc_id
}

#[tokio::test]
async fn document_that_stops_matching_while_it_is_judged_is_not_deleted() {
    let policy = Arc::new(ChangingPolicy::default());
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let builder = KnowledgeBase::builder().state(Arc::clone(&state));
    let kb = builder.deletion_policy(Arc::clone(&policy) as Arc<dyn DeletionPolicy>).build().await.unwrap();
    policy.kb.set(kb.clone()).unwrap();
    let mut added = vec![add(&kb, "basalt one").await, add(&kb, "marble two").await];
    let filter_expr = FilterExpr::parse("where", &json!({ "field": "category", "eq": "old" })).unwrap();
    let delete = BulkDelete { filter_expr, scope: Scope::All, own_only: false, key: None };
    let task = kb.delete_where(&delete, &"eva".into()).await.unwrap();
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    // Documents are deleted from the newest on, so the newest was judged first.
    let kept = added.pop().unwrap();
    let listed = kb.list(&Scope::All, &ListFilter::default(), None, 10).await.unwrap().items;
    assert_eq!(listed.iter().map(|document| document.doc_id).collect::<Vec<_>>(), [kept]);
    let Some(TaskResult::Deleted(result)) = task.result else { panic!("{:?}", task.result) };
    assert_eq!((result.documents, result.deleted.chunks), (1, 2));
    let leftovers = state.scan("partial-result/", None, lkr_state::ScanOrder::Ascending, 10).await.unwrap();
    assert_eq!(leftovers, []);
}

/// A clock that can be set back by an hour.
#[derive(Debug, Default)]
struct SetBack(AtomicBool);

impl Clock for SetBack {
    fn now(&self) -> OffsetDateTime {
        let is_behind = self.0.load(Ordering::SeqCst);
        SystemClock.now() - if is_behind { time::Duration::HOUR } else { time::Duration::ZERO }
    }

    fn new_uuid(&self) -> Uuid {
        let millis: u128 = if self.0.load(Ordering::SeqCst) { 3_600_000 } else { 0 };
        Uuid::from_u128(SystemClock.new_uuid().as_u128() - (millis << 80))
    }
}

#[tokio::test]
async fn documents_whose_ids_are_ahead_of_the_clock_are_deleted() {
    for scope in [Scope::All, Scope::from_iter([SpaceName::new("default").unwrap()])] {
        let clock = Arc::new(SetBack::default());
        let builder = KnowledgeBase::builder().clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let kb = builder.build().await.unwrap();
        add(&kb, "basalt one").await;
        add(&kb, "marble two").await;
        clock.0.store(true, Ordering::SeqCst);
        add(&kb, "gypsum three").await;
        let filter_expr = FilterExpr::parse("where", &json!({ "field": "category", "eq": "old" })).unwrap();
        let delete = BulkDelete { filter_expr, scope, own_only: false, key: None };
        let task = kb.delete_where(&delete, &"eva".into()).await.unwrap();
        let task = wait_for_task(&kb, task.task_id).await;
        let Some(TaskResult::Deleted(result)) = task.result else { panic!("{:?}", task.result) };
        assert_eq!(result.documents, 3);
        let left = kb.list(&Scope::All, &ListFilter::default(), None, 10).await.unwrap().items;
        assert_eq!(left, []);
    }
}

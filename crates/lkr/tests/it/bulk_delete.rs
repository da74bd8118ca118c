//! Deleting the documents that match a filter.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use lkr::{
    BulkDelete, DocId, Document, FilterExpr, KnowledgeBase, ListFilter, Scope, Submission, Task, TaskResult,
    TaskStatus,
    ports::{
        DeletionPolicy,
        ingest::Result,
        state::{MemoryState, StateStore, Write},
    },
};
use serde_json::json;

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

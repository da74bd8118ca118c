//! An outbox of one's own is told of what happens, in the step in which it does.

use std::sync::Arc;

use lkr::{
    Creator, DocId, DocumentChange, KnowledgeBase, NewDocument, Submission, Task,
    ports::{
        Outbox,
        state::{Expect, MemoryState, ScanOrder, StateStore, Write},
    },
};

/// Notes each once: told a second time, the step would fail.
#[derive(Debug)]
struct Notes;

impl Outbox for Notes {
    fn task_ended(&self, task: &Task) -> Vec<Write> {
        let key = format!("told/{}/{}/{}", task.task_id, task.kind.name(), task.status.name());
        vec![Write::put(key, Expect::Absent, "")]
    }

    fn document_deleted(&self, doc_id: DocId) -> Vec<Write> {
        vec![Write::put(format!("told/{doc_id}/deleted"), Expect::Absent, "")]
    }
}

#[tokio::test]
async fn an_outbox_is_told_of_each_end() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let builder = KnowledgeBase::builder().state(Arc::clone(&state)).outbox(Arc::new(Notes));
    let kb = builder.build().await.unwrap();
    let document = |text: &str| NewDocument { text: text.to_owned(), ..NewDocument::default() };
    let added = kb.add(document("The moon pulls the sea.")).await.unwrap();
    assert_eq!(kb.add(document("The moon pulls the sea.")).await.unwrap().doc_id, added.doc_id);
    let again = kb.replace(added.doc_id, document("The sun helps."), Submission::default()).await.unwrap();
    let all = kb.reclassify(&Creator::default()).await.unwrap();
    for task in [again.unwrap(), all] {
        while !kb.task(task.task_id).await.unwrap().unwrap().status.has_ended() {
            tokio::task::yield_now().await;
        }
    }
    let change = DocumentChange { title: Some("Tides".to_owned()), ..DocumentChange::default() };
    kb.change(added.doc_id, change).await.unwrap();
    kb.delete(added.doc_id).await.unwrap();
    kb.delete(added.doc_id).await.unwrap();
    let told = state.scan("told/", None, ScanOrder::Ascending, 100).await.unwrap();
    let ends = |end: &str| told.iter().filter(|(key, _)| key.ends_with(end)).count();
    assert_eq!(
        (ends("/ingest/done"), ends("/replace/done"), ends("/reclassify/done")),
        (2, 1, 1),
        "{told:?}"
    );
    assert_eq!((ends("/deleted"), told.len()), (1, 5), "{told:?}");
    kb.close().await;
}

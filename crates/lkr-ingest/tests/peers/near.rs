//! Near duplicates that arrive at several processes.

use super::{
    stalls::{Step, stalling},
    *,
};

const NEAR: Dedup = Dedup::Simhash { threshold: 8 };

/// Texts of one topic are near each other, and no other.
fn near_text(topic: usize, n: usize) -> NewDocument {
    let words: Vec<String> =
        (0..400).map(|word| format!("word{}", (word * 31 + topic * 7_919) % 99_991)).collect();
    let text = format!("{} ending{}", words.join(" "), n % 2);
    NewDocument { text, ..NewDocument::default() }
}

fn looking_for(dedup: Dedup) -> Submission {
    Submission { dedup, ..by_eva() }
}

/// Of near duplicates that arrive at two processes at once, one becomes a document; and a process notices what another has
/// published and deleted since it read the fingerprints.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn near_duplicates_are_found_across_processes() {
    let stores = Stores::new();
    let catalog = stores.catalog();
    let (one, other) = (stores.process(4).await, stores.process(4).await);
    let mut tasks = Vec::new();
    for n in 0..12 {
        let (document, submission) = (near_text(0, n), looking_for(NEAR));
        let process = if n % 3 == 0 { &one } else { &other };
        tasks.push(process.ingestor.submit(document, submission).await.unwrap());
    }
    let mut documents = BTreeSet::new();
    for task in &tasks {
        documents.insert(live(&catalog, task).await.doc_id);
    }
    assert_eq!(documents.len(), 1, "one document is left of twelve near duplicates");
    let first: DocId = documents.into_iter().next().unwrap();
    assert!(
        stores.state.scan("text-claims/", None, lkr_state::ScanOrder::Ascending, 9).await.unwrap().len() < 2
    );

    // Both have loaded the fingerprints. One deletes the document; the other must not find it any more, and the next one is
    // found by the one that did not publish it.
    one.ingestor.delete(first, Vec::new()).await.unwrap();
    let (document, submission) = (near_text(0, 0), looking_for(NEAR));
    let again = live(&catalog, &other.ingestor.submit(document, submission).await.unwrap()).await;
    assert_ne!(again.doc_id, first);
    for process in [&one, &other] {
        let (document, submission) = (near_text(0, 1), looking_for(NEAR));
        let task =
            ended(&catalog, process.ingestor.submit(document, submission).await.unwrap().task_id).await;
        let Some(TaskResult::Document(result)) = task.result else { panic!("no result") };
        assert_eq!(result.duplicate_of.unwrap().doc_id, again.doc_id);
    }
}

/// A process is stalled just before it publishes a text, and another one publishes a near text. Then the first goes on. Returns the
/// document of which its text is a duplicate, and the other's document.
async fn publish_while_another_is_stalled(rules: [Dedup; 2], loses_claims: bool) -> (Option<DocId>, DocId) {
    let stores = Stores::new();
    let catalog = stores.catalog();
    // Its only worker is the one that stops.
    let options = IngestOptions { workers: 1, ..IngestOptions::default() };
    let (first, stalled) = stalling(&stores, Step::Publication, false, options).await;
    let task = first.ingestor.submit(near_text(0, 0), looking_for(rules[0])).await.unwrap();
    eventually("the first process is not stalled", async || stalled.0.is_reached()).await;
    if loses_claims {
        // As after a stall for longer than a process is known without renewing its record.
        first.peers.leave().await;
    }
    let second = stores.process(2).await;
    let other = second.ingestor.submit(near_text(0, 1), looking_for(rules[1])).await.unwrap();
    let other = live(&catalog, &other).await.doc_id;
    stalled.0.open();
    let ended = ended(&catalog, task.task_id).await;
    assert_eq!(ended.status, TaskStatus::Done, "{:?}", ended.error);
    let Some(TaskResult::Document(result)) = ended.result else { panic!("no result") };
    let documents = catalog.stored_documents(None, 9).await.unwrap().len();
    assert_eq!(documents, if result.duplicate_of.is_some() { 1 } else { 2 });
    (result.duplicate_of.map(|duplicate| duplicate.doc_id), other)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn near_text_that_was_published_after_the_lookup_is_noticed_when_publishing() {
    let (duplicate_of, other) = publish_while_another_is_stalled([NEAR, Dedup::None], false).await;
    assert_eq!(duplicate_of, Some(other), "by a process that does not look for duplicates");
    let (duplicate_of, other) = publish_while_another_is_stalled([NEAR, NEAR], true).await;
    assert_eq!(duplicate_of, Some(other), "by a process that took the claim of a stalled one over");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn text_for_which_nobody_looks_for_duplicates_is_published_whatever_others_publish() {
    for rule in [Dedup::None, Dedup::Sha256] {
        let (duplicate_of, _) = publish_while_another_is_stalled([rule, NEAR], false).await;
        assert_eq!(duplicate_of, None);
    }
}

/// The claims of processes that are not known do not count, so that the publishing step alone decides.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn near_texts_become_one_document_of_each_topic_without_claims() {
    const TOPICS: usize = 5;
    let stores = Stores::new();
    let catalog = stores.catalog();
    let mut processes = Vec::new();
    for _ in 0..4 {
        let process = stores.process(3).await;
        process.peers.leave().await;
        processes.push(process);
    }
    let mut tasks = Vec::new();
    for n in 0..40 {
        let ingestor = &processes[n % processes.len()].ingestor;
        tasks.push(ingestor.submit(near_text(n % TOPICS, n), looking_for(NEAR)).await.unwrap());
    }
    let mut documents = BTreeSet::new();
    for task in &tasks {
        documents.insert(live(&catalog, task).await.doc_id);
    }
    assert_eq!(documents.len(), TOPICS);
    assert_eq!(catalog.stored_documents(None, 99).await.unwrap().len(), TOPICS);
}

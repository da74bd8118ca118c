//! Spaces: what a scope shows, that nothing outside it changes an answer, moving documents, deleting spaces.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lkr::{
    Creator, Dedup, DocId, DocumentChange, ErrorKind, KnowledgeBase, ListFilter, Scope, SearchRequest,
    SearchResponse, SpaceName, Submission, Task, TaskId, TaskKind, TaskLists, TaskStatus, Upsert,
    spaces::{Caller, NewSpace, ReadPolicy, WritePolicy},
};
use lkr_state::{FailingState, FaultFuture, MemoryState, ScanOrder, StateStore};

use crate::{
    change_failures::limit_calls,
    changes::{assert_tags, category},
    common::{ScriptedEmbedder, TestStores, document, wait_for_task, wait_until},
    ingest::points,
    replace::wait_until_only_live_data_remains,
};

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn scope(names: &[&str]) -> Scope {
    names.iter().map(|name| space(name)).collect()
}

fn into_space(name: &str) -> Submission {
    Submission { space: space(name), ..Submission::by("eva".into()) }
}

fn to(name: &str) -> DocumentChange {
    DocumentChange { space: Some(space(name)), ..DocumentChange::default() }
}

async fn open(stores: &TestStores) -> KnowledgeBase {
    stores.open(Some(ScriptedEmbedder::unlimited())).await
}

async fn create_space(kb: &KnowledgeBase, name: &str) {
    let new = NewSpace {
        name: space(name),
        title: String::new(),
        description: String::new(),
        read: ReadPolicy::Members,
        write: WritePolicy::Members,
        created_by: "eva".to_owned(),
    };
    kb.spaces().create(new, Vec::new()).await.unwrap();
}

async fn add_to(kb: &KnowledgeBase, name: &str, text: &str, sections: usize) -> Task {
    let task = kb.submit(document(text, sections), into_space(name)).await.unwrap();
    let task = wait_for_task(kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    task
}

async fn search(kb: &KnowledgeBase, scope: Scope, query: &str) -> SearchResponse {
    let request = SearchRequest { scope, top_k: 50, explain: true, ..SearchRequest::new(query) };
    let response = kb.search(&request).await.unwrap().response;
    let mut response = SearchResponse::clone(&response);
    response.took_ms = 0;
    if let Some(explain) = &mut response.explain {
        explain.legs.iter_mut().for_each(|leg| leg.ms = 0.0);
    }
    response
}

async fn found(kb: &KnowledgeBase, scope: Scope, query: &str) -> Vec<DocId> {
    let mut found: Vec<DocId> =
        search(kb, scope, query).await.results.iter().map(|result| result.doc_id).collect();
    found.sort_unstable();
    found.dedup();
    found
}

async fn listed(kb: &KnowledgeBase, scope: &Scope) -> Vec<DocId> {
    let (mut listed, mut after) = (Vec::new(), None);
    loop {
        let page = kb.list(scope, &ListFilter::default(), after, 2).await.unwrap();
        listed.extend(page.items.iter().map(|document| document.doc_id));
        after = page.next;
        if after.is_none() {
            return listed;
        }
    }
}

#[tokio::test]
async fn lesson_37_documents_outside_the_scope_change_no_answer() {
    let (mixed, alone) = (TestStores::default(), TestStores::default());
    let (with_secrets, without) = (open(&mixed).await, open(&alone).await);
    let readable = scope(&["default", "team"]);
    for round in 0..3 {
        let (text, name) = (format!("basalt {round}"), ["default", "team"][round % 2]);
        let task = add_to(&with_secrets, name, &text, 4).await;
        let other = add_to(&without, name, &text, 4).await;
        add_to(&with_secrets, "secret", &format!("basalt secret {round}"), 6).await;
        add_to(&with_secrets, "secret", &text, 4).await;
        for query in ["grey basalt", "part 2 of basalt 1", "secret"] {
            let seen = search(&with_secrets, readable.clone(), query).await;
            let expected = search(&without, readable.clone(), query).await;
            assert_eq!(without_ids(&seen), without_ids(&expected), "{query}");
        }
        assert_eq!(with_secrets.stats(&readable).await.unwrap(), without.stats(&readable).await.unwrap());
        assert_eq!(listed(&with_secrets, &readable).await.len(), listed(&without, &readable).await.len());
        let document = with_secrets.document(task.doc_id().unwrap()).await.unwrap().unwrap();
        assert_eq!(document.space, space(name));
        assert!(other.doc_id().is_ok());
        assert_tags(&mixed, &document).await;
    }
}

/// A response without the random ids, which differ between two knowledge bases.
fn without_ids(response: &SearchResponse) -> Vec<(String, u32, f32, String, Vec<String>)> {
    let result = |result: &lkr::SearchResult| {
        let scores = format!("{:?}", result.scores);
        (result.text.clone(), result.char_start, result.score, scores, result.path.clone())
    };
    let mut results: Vec<_> = response.results.iter().map(result).collect();
    results.sort_by(|a, b| a.partial_cmp(b).unwrap());
    results
}

#[tokio::test]
async fn change_in_another_space_keeps_cached_answers() {
    let stores = TestStores::default();
    let kb = open(&stores).await;
    add_to(&kb, "team", "granite", 2).await;
    let request = SearchRequest { scope: scope(&["team"]), ..SearchRequest::new("granite") };
    let cached = async || kb.search(&request).await.unwrap().cache == lkr::CacheStatus::Hit;
    assert!(!cached().await && cached().await);
    let secret = add_to(&kb, "secret", "granite", 2).await;
    kb.change(secret.doc_id().unwrap(), category("volcanic")).await.unwrap();
    kb.delete(secret.doc_id().unwrap()).await.unwrap();
    assert!(cached().await);
    let own = add_to(&kb, "team", "gneiss", 2).await;
    assert!(!cached().await && cached().await);
    kb.change(own.doc_id().unwrap(), to("secret")).await.unwrap();
    assert!(!cached().await);
}

#[tokio::test]
async fn duplicates_and_upserts_are_found_within_the_space() {
    for dedup in [Dedup::Sha256, Dedup::Simhash { threshold: 3 }] {
        let stores = TestStores::default();
        let kb = open(&stores).await;
        let submit = async |name: &str, upsert: Option<Upsert>| {
            let submission = Submission { dedup, upsert, ..into_space(name) };
            let new = lkr::NewDocument { source: "s".to_owned(), ..document("marble", 3) };
            let task = kb.submit(new, submission).await.unwrap();
            let task = wait_for_task(&kb, task.task_id).await;
            let result = task.result.clone().unwrap().document().unwrap();
            (task.doc_id().unwrap(), task.kind, result.duplicate_of.is_some())
        };
        let (first, _, _) = submit("a", None).await;
        let (twin, _, is_duplicate) = submit("b", None).await;
        assert!(first != twin && !is_duplicate, "{dedup:?}");
        let (again, _, is_duplicate) = submit("a", None).await;
        assert!(again == first && is_duplicate, "{dedup:?}");
        let (replaced, kind, _) = submit("b", Some(Upsert::Any)).await;
        assert_eq!((replaced, kind), (twin, TaskKind::Replace));
        let (new, kind, _) = submit("c", Some(Upsert::Any)).await;
        assert_eq!(kind, TaskKind::Ingest);
        assert!(new != first && new != twin);
    }
}

#[tokio::test]
async fn moved_document_is_found_in_the_new_space_alone() {
    let stores = TestStores::default();
    let kb = open(&stores).await;
    let doc_id = add_to(&kb, "a", "obsidian", 11).await.doc_id().unwrap();
    add_to(&kb, "b", "pumice", 2).await;
    let before = kb.detail(doc_id).await.unwrap().unwrap();
    let text = kb.text(doc_id).await.unwrap();
    let change = DocumentChange { title: Some("Glass".to_owned()), ..to("b") };
    let moved = kb.change(doc_id, change).await.unwrap().unwrap();
    assert_eq!((moved.space.as_str(), moved.title.as_str()), ("b", "Glass"));
    assert!(moved.revision != before.document.revision);
    assert_tags(&stores, &moved).await;
    let after = kb.detail(doc_id).await.unwrap().unwrap();
    assert_eq!(after.document, moved);
    let values = |nodes: &[lkr::NodeRecord<lkr::Node>]| -> Vec<_> {
        nodes.iter().map(|node| node.value.clone()).collect()
    };
    assert_eq!((values(&after.l2), values(&after.l3)), (values(&before.l2), values(&before.l3)));
    let parents: Vec<_> = after.l2.iter().map(|node| Some(node.id)).collect();
    assert!(after.l3.iter().all(|node| parents.contains(&node.parent_id)));
    assert_eq!(kb.text(doc_id).await.unwrap(), text);
    assert_eq!(found(&kb, scope(&["a"]), "obsidian").await, []);
    assert!(found(&kb, scope(&["b"]), "obsidian").await.contains(&doc_id));
    assert_eq!(listed(&kb, &scope(&["a"])).await, []);
    assert_eq!(listed(&kb, &scope(&["a", "b"])).await.len(), 2);
    assert_eq!(kb.stats(&scope(&["a"])).await.unwrap().counts.total(), 0);
    wait_until("the earlier points are collected", async || points(&stores).await[3] == 13).await;
    assert_eq!(kb.change(DocId::new(), to("b")).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn search_during_moves_finds_the_document_in_exactly_one_space() {
    let stores = TestStores::default();
    let kb = open(&stores).await;
    let doc_id = add_to(&kb, "a", "obsidian", 6).await.doc_id().unwrap();
    let mover = kb.clone();
    let moves = tokio::spawn(async move {
        for name in ["b", "a", "b", "a", "b", "a", "b", "a"] {
            mover.change(doc_id, to(name)).await.unwrap().unwrap();
        }
    });
    let mut searches = 0;
    while !moves.is_finished() || searches == 0 {
        let results = search(&kb, scope(&["a", "b"]), "obsidian grey").await.results;
        let chunks: std::collections::BTreeSet<u32> =
            results.iter().map(|result| result.char_start).collect();
        assert_eq!((results.len(), chunks.len()), (6, 6), "all of it, once");
        searches += 1;
        // A cached answer waits for nothing, so the moves would get no turn.
        tokio::task::yield_now().await;
    }
    moves.await.unwrap();
    assert_eq!(found(&kb, scope(&["a"]), "obsidian").await, [doc_id]);
    assert_eq!(found(&kb, scope(&["b"]), "obsidian").await, []);
}

/// A document in the space `a`, and its replacement, which runs until the embedder has permits.
async fn with_running_replacement(kb: &KnowledgeBase, embedder: &ScriptedEmbedder) -> (DocId, TaskId) {
    let doc_id = add_to(kb, "a", "old slate", 3).await.doc_id().unwrap();
    embedder.permits.forget_permits(1000);
    let task = kb.replace(doc_id, document("new slate", 9), into_space("a")).await.unwrap().unwrap();
    wait_until("the replacement runs", async || {
        kb.task(task.task_id).await.unwrap().unwrap().status == TaskStatus::Running
    })
    .await;
    (doc_id, task.task_id)
}

#[tokio::test]
async fn running_replacement_goes_along_with_a_move() {
    let stores = TestStores::default();
    let embedder = ScriptedEmbedder::new(100);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let (doc_id, task_id) = with_running_replacement(&kb, &embedder).await;
    kb.change(doc_id, to("b")).await.unwrap().unwrap();
    assert!(found(&kb, scope(&["b"]), "old slate").await.contains(&doc_id));
    embedder.permits.add_permits(100);
    let task = wait_for_task(&kb, task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    let document = kb.document(doc_id).await.unwrap().unwrap();
    assert_eq!(document.space, space("b"));
    assert_tags(&stores, &document).await;
    assert_eq!(found(&kb, scope(&["b"]), "new slate").await, [doc_id]);
    assert_eq!(found(&kb, scope(&["a"]), "slate").await, []);
}

/// The copy of a move that failed becomes garbage, so the next move must not copy to the same revision, even if a replacement
/// that waits leaves little choice.
#[tokio::test]
async fn move_that_is_tried_again_copies_to_another_revision() {
    let (left, hook) = limit_calls("apply", lkr_state::ErrorKind::Internal);
    let state = FailingState::new(Arc::new(MemoryState::default()), hook);
    let stores = TestStores { state: Arc::new(state), ..TestStores::default() };
    let embedder = ScriptedEmbedder::new(100);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let other = add_to(&kb, "a", "slate beside it", 1).await.doc_id().unwrap();
    let (doc_id, _) = with_running_replacement(&kb, &embedder).await;
    let mut copies = Vec::new();
    for elsewhere in ["c", "d"] {
        // The note is written, and nothing after it.
        left.store(1, Ordering::SeqCst);
        kb.change(doc_id, to("b")).await.unwrap_err();
        let notes = stores.state.scan("change/", None, ScanOrder::Ascending, 10).await.unwrap();
        let note = String::from_utf8(notes[0].1.value.to_vec()).unwrap();
        copies.push(note.split('@').next().unwrap().parse::<u64>().unwrap());
        left.store(u64::MAX, Ordering::SeqCst);
        // The janitor, which has failed meanwhile, is woken by another move.
        kb.change(other, to(elsewhere)).await.unwrap().unwrap();
        wait_until("the copy is given up", async || {
            stores.state.scan("change/", None, ScanOrder::Ascending, 10).await.unwrap().is_empty()
        })
        .await;
    }
    let moved = kb.change(doc_id, to("b")).await.unwrap().unwrap();
    copies.push(moved.revision);
    let different: std::collections::BTreeSet<u64> = copies.iter().copied().collect();
    assert_eq!(different.len(), copies.len(), "a revision was used twice: {copies:?}");
    wait_until("the copies are collected", async || {
        stores.state.scan("trash/", None, ScanOrder::Ascending, 10).await.unwrap().is_empty()
    })
    .await;
    assert!(kb.text(doc_id).await.unwrap().is_some());
    assert_eq!(found(&kb, scope(&["b"]), "old slate").await, [doc_id]);
}

#[tokio::test]
async fn deleted_space_leaves_nothing_and_its_name_is_never_used_again() {
    let stores = TestStores::default();
    let kb = open(&stores).await;
    create_space(&kb, "gone").await;
    for n in 0..5 {
        add_to(&kb, "gone", &format!("shale {n}"), 2).await;
    }
    let kept = add_to(&kb, "default", "shale", 2).await.doc_id().unwrap();
    let eva = Caller::Account { id: "1".to_owned(), is_admin: true, key: None };
    assert!(kb.scope_of(&eva, None).await.unwrap().contains(&space("gone")));
    assert_eq!(kb.documents_in(&space("gone")).await.unwrap(), 5);
    let task = kb.delete_space(&space("gone"), &"eva".into(), Vec::new()).await.unwrap();
    assert_eq!((task.kind, task.space.clone()), (TaskKind::DeleteSpace, Some(space("gone"))));
    assert!(!kb.scope_of(&eva, None).await.unwrap().contains(&space("gone")));
    let unknown = kb.scope_of(&eva, Some(&[space("gone")])).await.unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    assert_eq!(kb.cancel(task.task_id).await.unwrap_err().kind(), ErrorKind::Conflict);
    let task = wait_for_task(&kb, task.task_id).await;
    assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    let Some(lkr::TaskResult::Deleted(result)) = task.result else { panic!("{:?}", task.result) };
    assert_eq!((result.documents, result.deleted.chunks), (5, 10));
    assert_eq!(listed(&kb, &Scope::All).await, [kept]);
    assert_eq!(found(&kb, Scope::All, "shale").await, [kept]);
    assert_eq!(kb.spaces().directory().await.unwrap().space(&space("gone")), None);
    assert!(kb.spaces().directory().await.unwrap().is_used(&space("gone")));
    wait_until("points are collected", async || points(&stores).await == [1, 2, 2, 2]).await;
    let again = kb.delete_space(&space("gone"), &"eva".into(), Vec::new()).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound);
    let default = kb.delete_space(&SpaceName::default(), &"eva".into(), Vec::new()).await.unwrap_err();
    assert_eq!(default.kind(), ErrorKind::Conflict);
}

/// A document that becomes live while a space is counted is counted. Otherwise a space could be deleted as an empty one although it
/// has a document.
#[tokio::test]
async fn document_that_becomes_live_during_a_count_is_counted() {
    let (memory, embedder) = (Arc::new(MemoryState::default()), ScriptedEmbedder::new(0));
    let scans_until_publication = Arc::new(AtomicUsize::new(0));
    let (state, gate, scans) =
        (Arc::clone(&memory), Arc::clone(&embedder), Arc::clone(&scans_until_publication));
    let publish = move |operation: &'static str| -> FaultFuture {
        let left = |left: usize| left.checked_sub(1);
        let is_last =
            operation == "scan" && scans.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left) == Ok(1);
        let (state, gate) = (Arc::clone(&state), Arc::clone(&gate));
        Box::pin(async move {
            if is_last {
                gate.permits.add_permits(9);
                while state.scan("in-space/default/", None, ScanOrder::Ascending, 1).await.unwrap().is_empty()
                {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
            }
            None
        })
    };
    let state = Arc::new(FailingState::with_async_fault(memory, publish));
    let stores = TestStores { state, ..TestStores::default() };
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let task = kb.submit(document("slate", 1), into_space("default")).await.unwrap();
    wait_until("the task runs", async || {
        kb.task(task.task_id).await.unwrap().unwrap().status == TaskStatus::Running
    })
    .await;
    // Of the two reads of the count, the second one comes after the document became live.
    scans_until_publication.store(2, Ordering::SeqCst);
    assert_ne!(kb.documents_in(&SpaceName::default()).await.unwrap(), 0);
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    assert_eq!(kb.documents_in(&SpaceName::default()).await.unwrap(), 1);
}

/// A task in a space whose first attempt failed for good.
async fn failed_in(kb: &KnowledgeBase, embedder: &ScriptedEmbedder, name: &str, text: &str) -> TaskId {
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let task = kb.submit(document(text, 1), into_space(name)).await.unwrap();
    assert_eq!(wait_for_task(kb, task.task_id).await.status, TaskStatus::Failed);
    task.task_id
}

async fn assert_cannot_be_retried(kb: &KnowledgeBase, task: TaskId, reason: &str) {
    let refused = kb.retry(task).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains(reason), "{refused}");
    assert_eq!(kb.task(task).await.unwrap().unwrap().status, TaskStatus::Failed);
}

/// Otherwise a retry would make a document live in a space that nobody can read.
#[tokio::test]
async fn failed_task_of_a_deleted_space_keeps_nothing_and_cannot_be_retried() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    for (name, is_empty) in [("empty", true), ("full", false)] {
        create_space(&kb, name).await;
        let failed = failed_in(&kb, &embedder, name, &format!("slate {name}")).await;
        if is_empty {
            kb.spaces().delete_empty(&space(name), Vec::new()).await.unwrap();
            assert_cannot_be_retried(&kb, failed, "the space empty was deleted").await;
            kb.discard_failed(&space(name)).await.unwrap();
        } else {
            add_to(&kb, name, "shale", 1).await;
            let task = kb.delete_space(&space(name), &"eva".into(), Vec::new()).await.unwrap();
            assert_cannot_be_retried(&kb, failed, "the space full was deleted").await;
            assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
        }
        assert_cannot_be_retried(&kb, failed, &format!("the space {name} was deleted")).await;
        wait_until_only_live_data_remains(&stores, &kb).await;
    }
    assert_eq!(listed(&kb, &Scope::All).await, Vec::<DocId>::new());
}

/// The document lives elsewhere, so its failed replacement may still be retried.
#[tokio::test]
async fn deleted_space_leaves_the_failed_replacement_of_a_document_that_was_moved_out() {
    let (stores, embedder) = (TestStores::default(), ScriptedEmbedder::unlimited());
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    create_space(&kb, "gone").await;
    let doc_id = add_to(&kb, "gone", "shale", 1).await.doc_id().unwrap();
    embedder.retryable.store(false, Ordering::SeqCst);
    embedder.failures.store(1, Ordering::SeqCst);
    let failed =
        kb.replace(doc_id, document("slate", 1), Submission::by("eva".into())).await.unwrap().unwrap();
    assert_eq!(wait_for_task(&kb, failed.task_id).await.status, TaskStatus::Failed);
    kb.change(doc_id, to("default")).await.unwrap().unwrap();
    let task = kb.delete_space(&space("gone"), &"eva".into(), Vec::new()).await.unwrap();
    assert_eq!(wait_for_task(&kb, task.task_id).await.status, TaskStatus::Done);
    kb.retry(failed.task_id).await.unwrap().unwrap();
    assert_eq!(wait_for_task(&kb, failed.task_id).await.status, TaskStatus::Done);
    assert_eq!(found(&kb, scope(&["default"]), "slate").await, [doc_id]);
}

#[tokio::test]
async fn deleted_space_leaves_the_running_replacement_of_a_document_that_was_moved_out() {
    let embedder = ScriptedEmbedder::new(10);
    let kb = TestStores::default().open(Some(Arc::clone(&embedder))).await;
    create_space(&kb, "gone").await;
    let doc_id = add_to(&kb, "gone", "shale", 1).await.doc_id().unwrap();
    let left = embedder.permits.available_permits();
    embedder.permits.forget_permits(left);
    let replacement = kb.replace(doc_id, document("slate", 1), Submission::by("eva".into())).await.unwrap();
    let replacement = replacement.unwrap().task_id;
    kb.change(doc_id, to("default")).await.unwrap().unwrap();
    let task = kb.delete_space(&space("gone"), &"eva".into(), Vec::new()).await.unwrap();
    let deleted = async { wait_for_task(&kb, task.task_id).await.status };
    assert_eq!(deleted.await, TaskStatus::Done);
    embedder.permits.add_permits(100);
    let replaced = wait_for_task(&kb, replacement).await;
    assert_eq!(replaced.status, TaskStatus::Done, "{:?}", replaced.error);
    assert_eq!(found(&kb, scope(&["default"]), "slate").await, [doc_id]);
}

#[tokio::test]
async fn space_is_deleted_although_its_last_document_is_moved_out_at_that_moment() {
    let kb = open(&TestStores::default()).await;
    for n in 0..40 {
        let name = format!("gone{n}");
        create_space(&kb, &name).await;
        let doc_id = add_to(&kb, &name, "shale", 1).await.doc_id().unwrap();
        let eva = Creator::from("eva");
        let (space, out) = (space(&name), to("default"));
        let (moved, task) = tokio::join!(kb.change(doc_id, out), kb.delete_space(&space, &eva, Vec::new()));
        // A move after the deletion of the document finds none.
        let _ = moved;
        let task = wait_for_task(&kb, task.unwrap().task_id).await;
        assert_eq!(task.status, TaskStatus::Done, "{:?}", task.error);
    }
}

/// The lists of spaces and accounts, merged and paged, contain what a scan of all tasks selects.
#[tokio::test]
async fn task_lists_contain_the_tasks_of_their_spaces_and_account() {
    let kb = open(&TestStores::default()).await;
    let (spaces, accounts) = (["default", "legal", "secret"], ["", "ada", "bob"]);
    let mut tasks = Vec::new();
    for n in 0..150 {
        let created_by = Creator { name: "a name".to_owned(), id: accounts[n * 5 % 7 % 3].to_owned() };
        let space = space(spaces[n * 3 % 11 % 3]);
        let submission = Submission { space, ..Submission::by(created_by) };
        tasks.push(kb.submit(document(&format!("stone{n}"), 1), submission).await.unwrap());
    }
    for task in &tasks {
        wait_for_task(&kb, task.task_id).await;
    }
    // What is forgotten is in no list.
    for task in tasks.iter().step_by(7) {
        kb.delete_task(task.task_id).await.unwrap().unwrap();
    }
    for names in [&[][..], &["legal"], &["default", "secret"]] {
        for account in [None, Some(""), Some("ada"), Some("nobody")] {
            let of = TaskLists::Of {
                spaces: names.iter().map(|name| space(name)).collect(),
                asked_by: account.map(str::to_owned),
            };
            let is_in = |task: &Task| {
                task.space.as_ref().is_some_and(|space| names.contains(&space.as_str()))
                    || account.is_some_and(|account| task.created_by.is(account))
            };
            for limit in [1, 7, 200] {
                let expected = task_ids(&kb, &TaskLists::All, is_in, limit).await;
                assert_eq!(task_ids(&kb, &of, |_| true, limit).await, expected, "{of:?} {limit}");
                let is_odd = |task: &Task| task.task_id.as_bytes()[15] % 2 == 1;
                let expected =
                    task_ids(&kb, &TaskLists::All, |task| is_in(task) && is_odd(task), limit).await;
                assert_eq!(task_ids(&kb, &of, is_odd, limit).await, expected, "{of:?} {limit}");
            }
        }
    }
}

/// All pages of a listing of tasks.
async fn task_ids(
    kb: &KnowledgeBase,
    lists: &TaskLists,
    keep: impl Fn(&Task) -> bool,
    limit: usize,
) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = kb.tasks(lists, &keep, after, limit).await.unwrap();
        assert!(page.items.len() == limit || page.next.is_none());
        ids.extend(page.items.iter().map(|task| task.task_id));
        after = page.next;
        if after.is_none() {
            return ids;
        }
    }
}

/// The calls of the state store.
fn counted_state() -> (Arc<dyn StateStore>, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&calls);
    let state = FailingState::new(Arc::new(MemoryState::default()), move |operation| {
        log.lock().unwrap().push(operation.to_owned());
        None
    });
    (Arc::new(state), calls)
}

#[tokio::test]
async fn lesson_37_hidden_document_takes_the_reads_of_an_unknown_one() {
    let (state, calls) = counted_state();
    let stores = TestStores { state, ..TestStores::default() };
    let embedder = ScriptedEmbedder::new(100);
    let kb = stores.open(Some(Arc::clone(&embedder))).await;
    let live = add_to(&kb, "secret", "basalt", 3).await.doc_id().unwrap();
    let replaced = add_to(&kb, "secret", "marble", 3).await.doc_id().unwrap();
    embedder.permits.forget_permits(1000);
    let new = kb.submit(document("slate", 3), into_space("secret")).await.unwrap();
    let replacement =
        kb.replace(replaced, document("new slate", 3), into_space("secret")).await.unwrap().unwrap();
    for task in [new.task_id, replacement.task_id] {
        wait_until("the task runs", async || {
            kb.task(task).await.unwrap().unwrap().status == TaskStatus::Running
        })
        .await;
    }
    let mine = scope(&["default", "team"]);
    let reads = async |doc_id: DocId| {
        // Workers may read in between, so the least of some tries counts.
        let mut least: Option<Vec<String>> = None;
        for _ in 0..20 {
            calls.lock().unwrap().clear();
            assert_eq!(kb.home(&mine, doc_id).await.unwrap(), None);
            assert_eq!(kb.document_in(&mine, doc_id).await.unwrap(), None);
            let now = calls.lock().unwrap().clone();
            least = least.filter(|least| least.len() <= now.len()).or(Some(now));
        }
        least.unwrap()
    };
    let unknown = reads(DocId::new()).await;
    for hidden in [live, replaced, new.doc_id().unwrap()] {
        assert_eq!(reads(hidden).await, unknown);
    }
    let lists =
        TaskLists::Of { spaces: ["default", "team"].map(space).into(), asked_by: Some("eva".to_owned()) };
    let task_reads = async |task_id: TaskId| {
        let mut least = usize::MAX;
        for _ in 0..20 {
            calls.lock().unwrap().clear();
            assert_eq!(kb.task_in(&lists, task_id).await.unwrap(), None);
            least = least.min(calls.lock().unwrap().len());
        }
        least
    };
    assert_eq!(task_reads(new.task_id).await, task_reads(TaskId::new()).await);
    let lists = TaskLists::Of { spaces: ["secret"].map(space).into(), asked_by: None };
    assert_eq!(kb.task_in(&lists, new.task_id).await.unwrap().unwrap().task_id, new.task_id);
}

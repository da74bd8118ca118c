use std::sync::Arc;

use lkr_domain::Creator;
use lkr_state::{MemoryState, ScanOrder, StateStore};

use super::*;
use crate::{Acceptance, DeleteResult, ErrorKind, FailureReason, Stage, TaskFailure, TaskResult};

const SPACES: [&str; 2] = ["legal", "team"];
const ACCOUNTS: [&str; 3] = ["", "ada", "bob"];
const STATUSES: [TaskStatus; 4] =
    [TaskStatus::Pending, TaskStatus::Running, TaskStatus::Done, TaskStatus::Failed];

fn catalog() -> (Arc<MemoryState>, Catalog) {
    let state = Arc::new(MemoryState::default());
    let catalog = Catalog::new(Arc::clone(&state) as Arc<dyn StateStore>);
    (state, catalog)
}

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn failed(task: &Task) -> Task {
    let (reason, message) = (FailureReason::Internal, "no model".to_owned());
    let error = TaskFailure { reason, message, stage: Stage::Classify, retryable: true };
    Task { status: TaskStatus::Failed, error: Some(error), ..task.clone() }
}

/// Accepts the task with a number and brings it to one of several ends.
async fn add(catalog: &Catalog, n: usize) {
    let creator = Creator { name: "a name".to_owned(), id: ACCOUNTS[n % 3].to_owned() };
    let space = SPACES.get(n % 5).copied().map(space);
    let key = n.is_multiple_of(7).then(|| "a key".to_owned());
    let task = Task { key, ..Task::reclassify(catalog.clock(), space, creator) };
    catalog.accept(&[Acceptance { task: task.clone(), existing: None }], Vec::new()).await.unwrap();
    let unfinished = catalog.unfinished_task(task.subject).await.unwrap().unwrap();
    let active = unfinished.active;
    match n % 6 {
        0 => {}
        1 => {
            let task = Task { status: TaskStatus::Running, ..task };
            catalog.record_progress(active, &task).await.unwrap();
        }
        2 => catalog.fail(active, &failed(&task)).await.unwrap(),
        3 => drop(catalog.cancel(&unfinished, Vec::new()).await.unwrap()),
        4 => {
            catalog.fail(active, &failed(&task)).await.unwrap();
            catalog.retry(task.task_id, Vec::new()).await.unwrap().unwrap();
        }
        _ => {
            let result = TaskResult::Deleted(DeleteResult::default());
            let done = task.done(catalog.now(), Stage::Classify, 1, result);
            catalog.end(active, &done).await.unwrap();
        }
    }
}

/// All pages of a listing.
async fn listed(catalog: &Catalog, lists: &TaskLists, status: Option<TaskStatus>, limit: usize) -> Vec<Task> {
    let (mut tasks, mut after) = (Vec::new(), None);
    loop {
        let page = catalog.tasks_with_status(lists, status, |_| true, after, limit).await.unwrap();
        assert!(page.items.len() == limit || page.next.is_none());
        tasks.extend(page.items);
        after = page.next;
        if after.is_none() {
            return tasks;
        }
    }
}

/// Asserts that listings and counts by status contain what a scan of all tasks selects.
async fn assert_lists_have_the_tasks_of_their_statuses(catalog: &Catalog) {
    let all = listed(catalog, &TaskLists::All, None, 100).await;
    for (names, asked_by) in [(&SPACES[..], None), (&SPACES[..1], Some("ada")), (&SPACES[..0], Some("a key"))]
    {
        let spaces = names.iter().map(|name| space(name)).collect();
        let of = TaskLists::Of { spaces, asked_by: asked_by.map(str::to_owned) };
        let is_in = |task: &Task| {
            task.space.as_ref().is_some_and(|space| names.contains(&space.as_str()))
                || asked_by.is_some_and(|id| task.created_by.is(id) || task.key.as_deref() == Some(id))
        };
        for status in STATUSES {
            let with_status = || all.iter().filter(move |task| task.status == status).cloned();
            for limit in [1, 3, 100] {
                let expected: Vec<_> = with_status().collect();
                assert_eq!(listed(catalog, &TaskLists::All, Some(status), limit).await, expected);
                let expected: Vec<_> = with_status().filter(is_in).collect();
                assert_eq!(listed(catalog, &of, Some(status), limit).await, expected, "{of:?} {status:?}");
            }
        }
    }
    for name in SPACES.map(space) {
        let is_counted = |task: &&Task| task.space.as_ref() == Some(&name) && !task.status.has_ended();
        let expected = all.iter().filter(is_counted).count() as u64;
        assert_eq!(catalog.unfinished_in_space(&name).await.unwrap(), expected);
    }
    for task in &all {
        assert!(catalog.is_task_indexed(task).await.unwrap(), "{task:?}");
    }
}

/// The keys of all entries.
async fn entries(state: &MemoryState) -> Vec<String> {
    let records = state.scan(key::TASK_ENTRIES, None, ScanOrder::Ascending, 10_000).await.unwrap();
    records.into_iter().map(|(key, _)| key).collect()
}

#[tokio::test]
async fn listings_by_status_contain_the_tasks_with_it_in_all_lists() {
    let (state, catalog) = catalog();
    for n in 0..84 {
        add(&catalog, n).await;
    }
    assert_lists_have_the_tasks_of_their_statuses(&catalog).await;
    let tasks = listed(&catalog, &TaskLists::All, None, 100).await;
    for task in tasks.iter().filter(|task| task.status.has_ended()) {
        catalog.forget_task(task.task_id).await.unwrap().unwrap();
    }
    assert_lists_have_the_tasks_of_their_statuses(&catalog).await;
    let left = listed(&catalog, &TaskLists::All, None, 100).await;
    let count = left.iter().flat_map(keys).count();
    assert_eq!(entries(&state).await.len(), count, "an entry of a forgotten task is left");
}

#[tokio::test]
async fn listing_of_failed_and_unfinished_tasks_reads_no_others() {
    let (state, catalog) = catalog();
    for n in 0..6 {
        add(&catalog, n).await;
    }
    let unreadable = Write::put(key::task(TaskId::new()), Expect::Absent, "no task");
    state.apply(vec![unreadable]).await.unwrap();
    for (status, count) in [(TaskStatus::Pending, 2), (TaskStatus::Running, 1), (TaskStatus::Failed, 2)] {
        assert_eq!(listed(&catalog, &TaskLists::All, Some(status), 10).await.len(), count);
    }
    let done = catalog.tasks_with_status(&TaskLists::All, Some(TaskStatus::Done), |_| true, None, 10).await;
    assert_eq!(done.unwrap_err().kind(), ErrorKind::Corrupt);
}

#[tokio::test]
async fn upgrade_adds_the_entries_by_status_that_version_4_lacks() {
    let (state, catalog) = catalog();
    for n in 0..30 {
        add(&catalog, n).await;
    }
    let groups =
        [TaskGroup::Unfinished, TaskGroup::Failed].map(|group| key::tasks_in_group(group.name(), ""));
    let is_new = |key: &String| groups.iter().any(|group| key.starts_with(group));
    let mut writes: Vec<Write> = Vec::new();
    for key in entries(&state).await.into_iter().filter(is_new) {
        writes.push(Write::delete(key, Expect::Any));
    }
    writes.push(Write::put(key::VERSION, Expect::Any, "4"));
    state.apply(writes).await.unwrap();
    assert!(listed(&catalog, &TaskLists::All, Some(TaskStatus::Failed), 10).await.is_empty());
    assert_eq!(catalog.upgrade().await.unwrap(), Some(4));
    assert_lists_have_the_tasks_of_their_statuses(&catalog).await;
    assert_eq!(catalog.upgrade().await.unwrap(), None);
}

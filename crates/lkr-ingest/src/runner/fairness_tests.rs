use std::{path::PathBuf, sync::Mutex};

use lkr_catalog::{Acceptance, Originals, TaskInput, Texts};
use lkr_domain::{Creator, DocId, SpaceName, SystemClock, TaskId};
use lkr_state::{MemoryQueue, MemoryState, Peers};

use super::*;
use crate::text_budget::{SHORT_BYTES, TextBudget};

/// Records the order in which tasks begin. Long texts take an hour, and so do tasks over all documents.
struct OrderedJobs {
    texts: Texts,
    budget: TextBudget,
    begun: Mutex<Vec<TaskId>>,
}

impl Jobs for OrderedJobs {
    fn first_stage(&self, _: TaskKind) -> Stage {
        Stage::Parse
    }

    async fn reserve(&self, task: &Task) -> TextPermit {
        self.budget.acquire(self.length(task).await).await
    }

    async fn perform(&self, _: ActiveTask, task: &Task, _: &Report, share: TextPermit) -> Result<()> {
        self.begun.lock().unwrap().push(task.task_id);
        let is_corpus_task = task.subject.doc_id().is_none();
        let is_long = !is_corpus_task && self.length(task).await > SHORT_BYTES;
        assert_eq!(share.is_some(), is_long, "a long text needs its share before it begins");
        let minutes = if is_long || is_corpus_task { 60 } else { 1 };
        tokio::time::sleep(Duration::from_secs(60 * minutes)).await;
        Ok(())
    }

    async fn clean_up(&self, _: &Task) -> Result<()> {
        Ok(())
    }
}

impl OrderedJobs {
    async fn length(&self, task: &Task) -> u64 {
        self.texts.length(task.subject.doc_id().unwrap(), task.input.revision).await.unwrap()
    }
}

fn runner() -> Arc<Runner<OrderedJobs>> {
    let texts = Texts::new(Arc::new(object_store::memory::InMemory::new()));
    let queue: Arc<dyn TaskQueue> = Arc::new(MemoryQueue::default());
    let catalog = Catalog::new(Arc::new(MemoryState::default()));
    let gc = Arc::new(Gc::new(Originals::in_folder(PathBuf::new()), catalog.clone(), &Peers::default()));
    Arc::new(Runner {
        catalog,
        queueing: Arc::new(Queueing::new(Arc::clone(&queue), texts.clone(), 1000, Arc::clone(&gc))),
        queue,
        gc,
        options: IngestOptions::default(),
        idle: watch::Sender::new(0),
        busy: Arc::default(),
        store_wait: Arc::default(),
        observer: None,
        jobs: OrderedJobs { texts, budget: TextBudget::new(2 << 20), begun: Mutex::default() },
    })
}

async fn accept(runner: &Runner<OrderedJobs>, task: Task) -> TaskId {
    let acceptance = Acceptance { task: task.clone(), existing: None };
    runner.catalog.accept(&[acceptance], Vec::new()).await.unwrap();
    runner.queueing.push(std::slice::from_ref(&task)).await;
    task.task_id
}

/// Accepts and queues a document of an account.
async fn submit(runner: &Runner<OrderedJobs>, account: &str, bytes: usize) -> TaskId {
    let creator = Creator { name: account.to_owned(), id: account.to_owned() };
    let doc_id = DocId::new();
    runner.jobs.texts.put(doc_id, 1, "a".repeat(bytes)).await.unwrap();
    let task = Task::ingest(
        &SystemClock,
        doc_id,
        SpaceName::default(),
        creator,
        TaskInput { revision: 1, ..TaskInput::default() },
    );
    accept(runner, task).await
}

async fn begun(runner: &Runner<OrderedJobs>) -> Vec<TaskId> {
    tokio::time::sleep(Duration::from_secs(10)).await;
    runner.jobs.begun.lock().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn long_texts_that_wait_for_their_share_occupy_no_worker() {
    let runner = runner();
    let (_stop, stopped) = watch::channel(false);
    // One worker in all.
    let _worker = tokio::spawn(Arc::clone(&runner).work(Lane::Short, stopped.clone()));
    let _long_texts = tokio::spawn(Arc::clone(&runner).work_on_long_texts(stopped));
    let mut long = Vec::new();
    for _ in 0..8 {
        long.push(submit(&runner, "flood", 2 << 20).await);
    }
    assert_eq!(begun(&runner).await, [long[0]]);
    let short = submit(&runner, "other", 1_000).await;
    assert_eq!(begun(&runner).await, [long[0], short]);
}

#[tokio::test(start_paused = true)]
async fn documents_do_not_wait_for_many_tasks_over_all_documents() {
    let runner = runner();
    let mut over_all = Vec::new();
    for _ in 0..6 {
        over_all.push(accept(&runner, Task::reclassify(&SystemClock, None, Creator::default())).await);
    }
    let (_stop, stopped) = watch::channel(false);
    let _worker = tokio::spawn(Arc::clone(&runner).work(Lane::Short, stopped));
    assert_eq!(begun(&runner).await, over_all[..4]);
    let document = submit(&runner, "other", 1_000).await;
    assert_eq!(begun(&runner).await, [&over_all[..4], &[document]].concat());
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    let mut all = begun(&runner).await;
    all.sort_unstable();
    over_all.push(document);
    over_all.sort_unstable();
    assert_eq!(all, over_all, "the others follow");
}

#[tokio::test(start_paused = true)]
async fn document_of_another_account_passes_a_burst() {
    let runner = runner();
    let mut burst = Vec::new();
    for _ in 0..50 {
        burst.push(submit(&runner, "flood", 200_000).await);
    }
    let (_stop, stopped) = watch::channel(false);
    let _worker = tokio::spawn(Arc::clone(&runner).work(Lane::Short, stopped));
    assert_eq!(begun(&runner).await, [burst[0]]);
    let other = submit(&runner, "other", 1_000).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(begun(&runner).await, [burst[0], other]);
}

#[tokio::test(start_paused = true)]
async fn document_of_another_account_begins_while_a_burst_holds_the_workers() {
    let runner = runner();
    let mut burst = Vec::new();
    for _ in 0..8 {
        burst.push(submit(&runner, "flood", 900_000).await);
    }
    let (_stop, stopped) = watch::channel(false);
    let workers = [Lane::Short, Lane::Short, Lane::Spare];
    let _workers = workers.map(|lane| tokio::spawn(Arc::clone(&runner).work(lane, stopped.clone())));
    assert_eq!(begun(&runner).await, burst[..2]);
    let other = [submit(&runner, "other", 1_000).await, submit(&runner, "other", 1_000).await];
    assert_eq!(begun(&runner).await, [&burst[..2], &other[..1]].concat());
}

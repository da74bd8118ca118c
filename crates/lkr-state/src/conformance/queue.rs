use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lkr_domain::TaskId;
use tokio::{task::JoinSet, time::Instant};

use super::support::*;
use crate::ErrorKind;

/// A queue that holds nothing gives nothing, and knows no task.
pub async fn an_empty_queue_gives_nothing(queue: Queue) {
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
    assert!(!queue.remove(TaskId::new()).await.unwrap());
}

/// Pushed, claimed, finished: the task is counted until the end, and then gone.
pub async fn a_task_goes_through(queue: Queue) {
    let task = TaskId::new();
    queue.push(task, NONE).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 1);
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    assert_eq!(claim.task, task);
    assert_eq!(queue.len().await.unwrap(), 1, "a claimed task counts");
    queue.finish(&claim).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
}

/// A task that is queued is not queued again, and its delay stays what it was.
pub async fn push_is_idempotent(queue: Queue) {
    let (now, later) = (TaskId::new(), TaskId::new());
    queue.push(now, NONE).await.unwrap();
    queue.push(now, LONG).await.unwrap();
    queue.push(later, LONG).await.unwrap();
    queue.push(later, NONE).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 2);
    assert_eq!(queue.claim(LONG, LONG).await.unwrap().unwrap().task, now);
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None, "the delay was not cut short");
}

/// A task that is claimed is not queued again: the claim stays good, and nobody else gets the task.
pub async fn push_of_a_claimed_task_does_nothing(queue: Queue) {
    let task = TaskId::new();
    queue.push(task, NONE).await.unwrap();
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    queue.push(task, NONE).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 1);
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
    queue.heartbeat(&claim, LONG).await.unwrap();
    queue.finish(&claim).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// A finished or removed task may come again, and old claims do not hold it.
pub async fn a_finished_task_can_be_pushed_again(queue: Queue) {
    let task = TaskId::new();
    let mut old = Vec::new();
    for round in 0..3 {
        queue.push(task, NONE).await.unwrap();
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        for lost in &old {
            assert_kind(queue.finish(lost).await, ErrorKind::LeaseLost);
            assert_kind(queue.heartbeat(lost, LONG).await, ErrorKind::LeaseLost);
        }
        if round == 1 {
            assert!(queue.remove(task).await.unwrap());
        } else {
            queue.finish(&claim).await.unwrap();
        }
        old.push(claim);
    }
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// A task is not claimable before its delay is over, and then it is.
pub async fn a_delayed_task_waits(queue: Queue) {
    let (soon, never) = (TaskId::new(), TaskId::new());
    let begin = Instant::now();
    queue.push(soon, ms(150)).await.unwrap();
    queue.push(never, LONG * 100).await.unwrap();
    let early = queue.claim(LONG, NONE).await.unwrap();
    assert!(early.is_none() || begin.elapsed() >= ms(150), "claimed too early");
    if early.is_none() {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert_eq!(claim.task, soon);
        assert!(begin.elapsed() >= ms(149), "claimed after {:?}", begin.elapsed());
    }
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
    assert_eq!(queue.len().await.unwrap(), 2);
}

/// The task that has been claimable for the longest comes first: by the ends of their delays, then as they came.
pub async fn claims_come_in_order(queue: Queue) {
    let tasks: Vec<TaskId> = (0..6).map(|_| TaskId::new()).collect();
    // The delays leave a slow store the time to take the others first.
    queue.push(tasks[4], ms(2_400)).await.unwrap();
    queue.push(tasks[3], ms(1_200)).await.unwrap();
    // Not in the order of their ids.
    for n in [2, 0, 1] {
        queue.push(tasks[n], NONE).await.unwrap();
        tokio::time::sleep(ms(3)).await;
    }
    tokio::time::sleep(ms(2_600)).await;
    queue.push(tasks[5], NONE).await.unwrap();
    for n in [2, 0, 1, 3, 4, 5] {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert_eq!(Some(n), tasks.iter().position(|task| *task == claim.task));
    }
}

/// Queued, delayed or claimed, the task is gone, and the claim with it.
pub async fn remove_takes_a_task_from_whoever_holds_it(queue: Queue) {
    let (queued, delayed, claimed) = (TaskId::new(), TaskId::new(), TaskId::new());
    queue.push(claimed, NONE).await.unwrap();
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    queue.push(queued, NONE).await.unwrap();
    queue.push(delayed, LONG).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 3);
    for task in [queued, delayed, claimed] {
        assert!(queue.remove(task).await.unwrap());
        assert!(!queue.remove(task).await.unwrap(), "it is gone");
    }
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_kind(queue.finish(&claim).await, ErrorKind::LeaseLost);
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
}

/// Twenty tasks that push one task at once make one entry.
pub async fn concurrent_pushes_of_one_task_make_one(queue: Queue) {
    let task = TaskId::new();
    let mut tasks = JoinSet::new();
    for _ in 0..20 {
        let queue = Arc::clone(&queue);
        tasks.spawn(async move { queue.push(task, NONE).await.unwrap() });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(queue.len().await.unwrap(), 1);
    assert!(queue.claim(LONG, LONG).await.unwrap().is_some());
    assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
}

/// A write whose future is dropped is done or not: the queue counts right, and each task can still go through.
pub async fn dropped_writes_happen_whole_or_not_at_all(queue: Queue) {
    let tasks: Vec<TaskId> = (0..30).map(|_| TaskId::new()).collect();
    for (n, task) in tasks.iter().enumerate() {
        poll_once(queue.push(*task, NONE));
        drop_after(Duration::from_micros(n as u64 * 100), queue.push(*task, NONE)).await;
        queue.push(*task, NONE).await.unwrap();
    }
    assert_eq!(queue.len().await.unwrap(), 30);
    let mut seen = BTreeSet::new();
    for n in 0..30 {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert!(seen.insert(claim.task), "{claim:?} came twice");
        match n % 3 {
            0 => drop(poll_once(queue.finish(&claim))),
            1 => drop_after(Duration::from_micros(n * 50), queue.finish(&claim)).await,
            _ => drop(poll_once(queue.remove(claim.task))),
        }
        if let Err(error) = queue.finish(&claim).await {
            assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}");
        }
    }
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// Delays, leases and waits beyond what a clock can tell are for ever.
pub async fn times_without_end(queue: Queue) {
    let (task, never) = (TaskId::new(), TaskId::new());
    queue.push(never, Duration::MAX).await.unwrap();
    queue.push(task, NONE).await.unwrap();
    let claim = queue.claim(Duration::MAX, Duration::MAX).await.unwrap().unwrap();
    assert_eq!(claim.task, task);
    queue.heartbeat(&claim, Duration::MAX).await.unwrap();
    assert_eq!(queue.claim(LONG, ms(20)).await.unwrap(), None);
    queue.retry(&claim, Duration::MAX).await.unwrap();
    assert_eq!(queue.claim(LONG, ms(20)).await.unwrap(), None);
    assert_eq!(queue.len().await.unwrap(), 2);
    assert!(queue.remove(never).await.unwrap() && queue.remove(task).await.unwrap());
}

/// A queue that works says so.
pub async fn queue_health_is_good(queue: Queue) {
    queue.health().await.unwrap();
    assert!(!format!("{queue:?}").is_empty());
}

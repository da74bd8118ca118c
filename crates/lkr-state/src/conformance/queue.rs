use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lkr_domain::TaskId;
use tokio::{task::JoinSet, time::Instant};

use super::support::*;
use crate::ErrorKind;

/// An empty queue has no task to count, claim or remove.
pub async fn empty_queue_has_no_task_to_claim(queue: Queue) {
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
    assert!(!queue.remove(TaskId::new()).await.unwrap());
}

/// A task is counted from its push until it is finished.
pub async fn task_counts_until_it_is_finished(queue: Queue) {
    let task = TaskId::new();
    queue.push(task, ZERO).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 1);
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    assert_eq!(claim.task, task);
    assert_eq!(queue.len().await.unwrap(), 1, "a claimed task must be counted");
    queue.finish(&claim).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
}

/// A queue that can tell its oldest task tells the one with the smallest id, claimed or not.
pub async fn oldest_task_is_the_one_with_the_smallest_id(queue: Queue) {
    let (first, second) = (TaskId::new(), TaskId::new());
    queue.push(second, ZERO).await.unwrap();
    let can_tell = queue.oldest().await.unwrap().is_some();
    let told = |task: TaskId| can_tell.then_some(task);
    assert_eq!(queue.oldest().await.unwrap(), told(second));
    queue.push(first, LONG).await.unwrap();
    assert_eq!(queue.oldest().await.unwrap(), told(first));
    assert_eq!(queue.claim(LONG, LONG).await.unwrap().unwrap().task, second);
    queue.remove(first).await.unwrap();
    assert_eq!(queue.oldest().await.unwrap(), told(second));
    queue.remove(second).await.unwrap();
    assert_eq!(queue.oldest().await.unwrap(), None);
}

/// Pushing a queued task again neither adds an entry nor changes its delay.
pub async fn push_of_a_queued_task_changes_nothing(queue: Queue) {
    let (now, later) = (TaskId::new(), TaskId::new());
    queue.push(now, ZERO).await.unwrap();
    queue.push(now, LONG).await.unwrap();
    queue.push(later, LONG).await.unwrap();
    queue.push(later, ZERO).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 2);
    assert_eq!(queue.claim(LONG, LONG).await.unwrap().unwrap().task, now);
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None, "the delay must not change");
}

/// Pushing a claimed task adds no entry, and its claim stays valid.
pub async fn push_of_a_claimed_task_changes_nothing(queue: Queue) {
    let task = TaskId::new();
    queue.push(task, ZERO).await.unwrap();
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    queue.push(task, ZERO).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 1);
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
    queue.heartbeat(&claim, LONG).await.unwrap();
    queue.finish(&claim).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// A finished or removed task can be pushed again, and its old claims stay invalid.
pub async fn finished_or_removed_task_can_be_pushed_again(queue: Queue) {
    let task = TaskId::new();
    let mut old = Vec::new();
    for round in 0..3 {
        queue.push(task, ZERO).await.unwrap();
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

/// A delayed task is not claimable before its delay ends.
pub async fn delayed_task_is_claimable_only_after_its_delay(queue: Queue) {
    let (soon, never) = (TaskId::new(), TaskId::new());
    let begin = Instant::now();
    queue.push(soon, ms(150)).await.unwrap();
    queue.push(never, LONG * 100).await.unwrap();
    let early = queue.claim(LONG, ZERO).await.unwrap();
    assert!(early.is_none() || begin.elapsed() >= ms(150), "claimed too early");
    if early.is_none() {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert_eq!(claim.task, soon);
        assert!(begin.elapsed() >= ms(149), "claimed after {:?}", begin.elapsed());
    }
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
    assert_eq!(queue.len().await.unwrap(), 2);
}

/// Tasks are claimed in the order in which their delays end, then in the order of their pushes.
pub async fn claim_returns_the_task_claimable_for_longest(queue: Queue) {
    let tasks: Vec<TaskId> = (0..6).map(|_| TaskId::new()).collect();
    // The delays are long enough for a slow store to queue the other tasks first.
    queue.push(tasks[4], ms(2_400)).await.unwrap();
    queue.push(tasks[3], ms(1_200)).await.unwrap();
    // The order differs from that of the ids.
    for n in [2, 0, 1] {
        queue.push(tasks[n], ZERO).await.unwrap();
        tokio::time::sleep(ms(3)).await;
    }
    tokio::time::sleep(ms(2_600)).await;
    queue.push(tasks[5], ZERO).await.unwrap();
    for n in [2, 0, 1, 3, 4, 5] {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert_eq!(Some(n), tasks.iter().position(|task| *task == claim.task));
    }
}

/// A queued, delayed or claimed task can be removed; removal invalidates the claim.
pub async fn remove_takes_queued_delayed_and_claimed_tasks(queue: Queue) {
    let (queued, delayed, claimed) = (TaskId::new(), TaskId::new(), TaskId::new());
    queue.push(claimed, ZERO).await.unwrap();
    let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
    queue.push(queued, ZERO).await.unwrap();
    queue.push(delayed, LONG).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 3);
    for task in [queued, delayed, claimed] {
        assert!(queue.remove(task).await.unwrap());
        assert!(!queue.remove(task).await.unwrap(), "the task must be removed");
    }
    assert_eq!(queue.len().await.unwrap(), 0);
    assert_kind(queue.finish(&claim).await, ErrorKind::LeaseLost);
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
}

/// Twenty concurrent pushes of one task create one entry.
pub async fn concurrent_pushes_of_one_task_queue_it_once(queue: Queue) {
    let task = TaskId::new();
    let mut pushes = JoinSet::new();
    for _ in 0..20 {
        let queue = Arc::clone(&queue);
        pushes.spawn(async move { queue.push(task, ZERO).await.unwrap() });
    }
    while let Some(result) = pushes.join_next().await {
        result.unwrap();
    }
    assert_eq!(queue.len().await.unwrap(), 1);
    assert!(queue.claim(LONG, LONG).await.unwrap().is_some());
    assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
}

/// If the future of a write is dropped, the write is applied or not; counts stay right and each task can be finished.
pub async fn dropped_queue_writes_apply_or_do_nothing(queue: Queue) {
    let tasks: Vec<TaskId> = (0..30).map(|_| TaskId::new()).collect();
    for (n, task) in tasks.iter().enumerate() {
        poll_once(queue.push(*task, ZERO));
        drop_after(Duration::from_micros(n as u64 * 100), queue.push(*task, ZERO)).await;
        queue.push(*task, ZERO).await.unwrap();
    }
    assert_eq!(queue.len().await.unwrap(), 30);
    let mut seen = BTreeSet::new();
    for n in 0..30 {
        let claim = queue.claim(LONG, LONG).await.unwrap().unwrap();
        assert!(seen.insert(claim.task), "{claim:?} was claimed twice");
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

/// Delays, leases and waits that are too large for the clock never end.
pub async fn durations_beyond_the_clock_never_end(queue: Queue) {
    let (task, never) = (TaskId::new(), TaskId::new());
    queue.push(never, Duration::MAX).await.unwrap();
    queue.push(task, ZERO).await.unwrap();
    let claim = queue.claim(Duration::MAX, Duration::MAX).await.unwrap().unwrap();
    assert_eq!(claim.task, task);
    queue.heartbeat(&claim, Duration::MAX).await.unwrap();
    assert_eq!(queue.claim(LONG, ms(20)).await.unwrap(), None);
    queue.retry(&claim, Duration::MAX).await.unwrap();
    assert_eq!(queue.claim(LONG, ms(20)).await.unwrap(), None);
    assert_eq!(queue.len().await.unwrap(), 2);
    assert!(queue.remove(never).await.unwrap() && queue.remove(task).await.unwrap());
}

/// A working queue reports that it is healthy.
pub async fn health_of_a_working_queue_is_ok(queue: Queue) {
    queue.health().await.unwrap();
    assert!(!format!("{queue:?}").is_empty());
}

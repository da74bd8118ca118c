use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lkr_domain::TaskId;
use tokio::{task::JoinSet, time::Instant};

use super::support::*;
use crate::{Claim, ErrorKind};

async fn push_new_task(queue: &Queue) -> TaskId {
    let task = TaskId::new();
    queue.push(task, ZERO).await.unwrap();
    task
}

async fn claim(queue: &Queue, lease: Duration) -> Claim {
    queue.claim(lease, LONG).await.unwrap().expect("a task must be claimable")
}

/// All three operations refuse an invalid claim and change nothing.
async fn assert_lost(queue: &Queue, claim: &Claim) {
    assert_kind(queue.heartbeat(claim, LONG).await, ErrorKind::LeaseLost);
    assert_kind(queue.retry(claim, ZERO).await, ErrorKind::LeaseLost);
    assert_kind(queue.finish(claim).await, ErrorKind::LeaseLost);
}

/// A retried task is claimable again, and its old claim is invalid.
pub async fn retry_makes_the_task_claimable_again(queue: Queue) {
    let task = push_new_task(&queue).await;
    for _ in 0..3 {
        let claimed = claim(&queue, LONG).await;
        assert_eq!(claimed.task, task);
        queue.retry(&claimed, ZERO).await.unwrap();
        assert_eq!(queue.len().await.unwrap(), 1);
        assert_lost(&queue, &claimed).await;
        assert_eq!(queue.len().await.unwrap(), 1);
    }
    queue.finish(&claim(&queue, LONG).await).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// A task that is retried with a delay is not claimable before the delay ends.
pub async fn retry_with_a_delay_is_claimable_only_after_it(queue: Queue) {
    let task = push_new_task(&queue).await;
    let claimed = claim(&queue, LONG).await;
    let begin = Instant::now();
    queue.retry(&claimed, ms(150)).await.unwrap();
    let early = queue.claim(LONG, ZERO).await.unwrap();
    assert!(early.is_none() || begin.elapsed() >= ms(150), "claimed too early");
    if early.is_none() {
        assert_eq!(claim(&queue, LONG).await.task, task);
        assert!(begin.elapsed() >= ms(149), "claimed after {:?}", begin.elapsed());
    }
}

/// A retried task is claimed after tasks that were claimable earlier.
pub async fn retried_task_queues_behind_earlier_tasks(queue: Queue) {
    let first = push_new_task(&queue).await;
    tokio::time::sleep(ms(3)).await;
    let second = push_new_task(&queue).await;
    let claimed = claim(&queue, LONG).await;
    assert_eq!(claimed.task, first);
    tokio::time::sleep(ms(3)).await;
    queue.retry(&claimed, ZERO).await.unwrap();
    assert_eq!(claim(&queue, LONG).await.task, second);
    assert_eq!(claim(&queue, LONG).await.task, first);
}

/// While its lease runs, no other worker can claim a task.
pub async fn task_under_lease_is_not_claimed_again(queue: Queue) {
    let tasks: BTreeSet<TaskId> = [push_new_task(&queue).await, push_new_task(&queue).await].into();
    let claimed = [claim(&queue, LONG).await, claim(&queue, LONG).await];
    assert_eq!(claimed.iter().map(|claim| claim.task).collect::<BTreeSet<_>>(), tasks);
    assert_eq!(queue.claim(LONG, ms(30)).await.unwrap(), None);
    for claim in &claimed {
        queue.finish(claim).await.unwrap();
    }
}

/// When a lease has expired and another worker claims the task, the first claim is invalid.
pub async fn expired_lease_lets_another_worker_claim_the_task(queue: Queue) {
    let task = push_new_task(&queue).await;
    let begin = Instant::now();
    let lost = claim(&queue, ms(100)).await;
    let new = claim(&queue, LONG).await;
    assert!(begin.elapsed() >= ms(99), "claimed after {:?}", begin.elapsed());
    assert_eq!((lost.task, new.task), (task, task));
    assert_ne!(lost.token, new.token);
    assert_lost(&queue, &lost).await;
    queue.heartbeat(&new, LONG).await.unwrap();
    queue.finish(&new).await.unwrap();
    assert_lost(&queue, &new).await;
}

/// A worker whose lease has expired keeps the task until another worker claims it.
pub async fn expired_lease_is_valid_until_another_claim(queue: Queue) {
    for round in 0..3 {
        push_new_task(&queue).await;
        let claimed = claim(&queue, ms(1)).await;
        tokio::time::sleep(ms(30)).await;
        match round {
            0 => {
                queue.heartbeat(&claimed, LONG).await.unwrap();
                assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None, "the renewed lease must hold");
                queue.finish(&claimed).await.unwrap();
            }
            1 => queue.finish(&claimed).await.unwrap(),
            _ => queue.retry(&claimed, LONG).await.unwrap(),
        }
        assert_eq!(queue.claim(LONG, ZERO).await.unwrap(), None);
    }
    assert_eq!(queue.len().await.unwrap(), 1);
}

/// A heartbeat can move the end of a lease later or earlier.
pub async fn heartbeat_extends_or_shortens_the_lease(queue: Queue) {
    let task = push_new_task(&queue).await;
    let claimed = claim(&queue, ms(100)).await;
    queue.heartbeat(&claimed, LONG).await.unwrap();
    assert_eq!(
        queue.claim(LONG, ms(200)).await.unwrap(),
        None,
        "the renewed lease must outlast the first one"
    );
    queue.heartbeat(&claimed, ms(10)).await.unwrap();
    let new = claim(&queue, LONG).await;
    assert_eq!(new.task, task);
    assert_lost(&queue, &claimed).await;
}

/// What was finished or given back cannot be finished or given back again.
pub async fn finished_or_forged_claim_is_refused(queue: Queue) {
    push_new_task(&queue).await;
    let claimed = claim(&queue, LONG).await;
    queue.finish(&claimed).await.unwrap();
    assert_lost(&queue, &claimed).await;
    assert_eq!(queue.len().await.unwrap(), 0);
    push_new_task(&queue).await;
    let claimed = claim(&queue, LONG).await;
    let forged = Claim { token: claimed.token.wrapping_add(1), ..claimed.clone() };
    assert_lost(&queue, &forged).await;
    let other = Claim { task: TaskId::new(), ..claimed.clone() };
    assert_lost(&queue, &other).await;
    queue.finish(&claimed).await.unwrap();
}

/// The claim of a removed task is invalid, even after the task is pushed and claimed again.
pub async fn claim_of_a_removed_task_is_lost(queue: Queue) {
    let task = push_new_task(&queue).await;
    let claimed = claim(&queue, LONG).await;
    assert!(queue.remove(task).await.unwrap());
    assert_lost(&queue, &claimed).await;
    queue.push(task, ZERO).await.unwrap();
    assert_lost(&queue, &claimed).await;
    assert_eq!(queue.len().await.unwrap(), 1);
    let again = claim(&queue, LONG).await;
    assert_lost(&queue, &claimed).await;
    queue.finish(&again).await.unwrap();
}

/// A waiting claim gets a task that is pushed or retried meanwhile.
pub async fn waiting_claim_gets_a_pushed_or_retried_task(queue: Queue) {
    for by_retry in [false, true] {
        let task = TaskId::new();
        let claimed = if by_retry {
            queue.push(task, ZERO).await.unwrap();
            Some(claim(&queue, LONG).await)
        } else {
            None
        };
        let waiter = {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.claim(LONG, LONG).await.unwrap() })
        };
        tokio::time::sleep(ms(50)).await;
        assert!(!waiter.is_finished(), "there must be nothing to claim");
        let begin = Instant::now();
        match claimed {
            Some(claimed) => queue.retry(&claimed, ZERO).await.unwrap(),
            None => queue.push(task, ZERO).await.unwrap(),
        }
        let claim = waiter.await.unwrap().expect("the claim must get a task within its wait");
        assert_eq!(claim.task, task);
        assert!(begin.elapsed() < WAKE_UP_LIMIT, "the waiting claim must be woken");
        queue.finish(&claim).await.unwrap();
    }
}

/// A waiting claim gets a task whose delay or lease ends meanwhile, even if the task was pushed during the wait.
pub async fn waiting_claim_gets_a_task_whose_delay_or_lease_ends(queue: Queue) {
    let begin = Instant::now();
    let far = TaskId::new();
    queue.push(far, LONG * 100).await.unwrap();
    let waiter = {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.claim(ms(60), LONG).await.unwrap() })
    };
    tokio::time::sleep(ms(30)).await;
    let soon = TaskId::new();
    queue.push(soon, ms(60)).await.unwrap();
    let first = waiter.await.unwrap().expect("the claim must get a task within its wait");
    assert_eq!(first.task, soon);
    assert!(begin.elapsed() < WAKE_UP_LIMIT, "the claim must return when the delay ends");
    let second = claim(&queue, LONG).await;
    assert_eq!(second.task, soon, "the lease of the task has ended");
    queue.finish(&second).await.unwrap();
}

/// Each of eight waiting claims gets one of eight pushed tasks.
pub async fn each_waiting_claim_gets_a_task(queue: Queue) {
    let mut waiters = JoinSet::new();
    for _ in 0..8 {
        let queue = Arc::clone(&queue);
        waiters.spawn(async move { queue.claim(LONG, LONG).await.unwrap().map(|claim| claim.task) });
    }
    tokio::time::sleep(ms(30)).await;
    let mut expected = BTreeSet::new();
    for _ in 0..8 {
        expected.insert(push_new_task(&queue).await);
    }
    let mut found = BTreeSet::new();
    while let Some(result) = waiters.join_next().await {
        found.insert(result.unwrap().expect("each claim must get a task"));
    }
    assert_eq!(found, expected);
}

/// Without a claimable task, a claim returns `None` after its wait.
pub async fn claim_without_a_task_returns_after_its_wait(queue: Queue) {
    queue.push(TaskId::new(), LONG).await.unwrap();
    for wait in [0, 20, 80] {
        let begin = Instant::now();
        assert_eq!(queue.claim(LONG, ms(wait)).await.unwrap(), None);
        assert!(begin.elapsed() + ms(1) >= ms(wait), "returned after {:?}", begin.elapsed());
    }
}

/// Each task is claimed by exactly one of eight concurrent workers.
pub async fn concurrent_workers_claim_each_task_once(queue: Queue) {
    let tasks: BTreeSet<TaskId> = (0..120).map(|_| TaskId::new()).collect();
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let queue = Arc::clone(&queue);
        workers.spawn(async move {
            let mut tasks = Vec::new();
            while let Some(claim) = queue.claim(LONG, ms(300)).await.unwrap() {
                tasks.push(claim.task);
                tokio::task::yield_now().await;
                if tasks.len() % 2 == 0 {
                    queue.finish(&claim).await.unwrap();
                }
            }
            tasks
        });
    }
    for task in &tasks {
        queue.push(*task, ZERO).await.unwrap();
    }
    let mut claimed = Vec::new();
    while let Some(result) = workers.join_next().await {
        claimed.extend(result.unwrap());
    }
    assert_eq!(claimed.len(), tasks.len(), "each task must be claimed once");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), tasks);
}

/// Workers finish, retry and abandon tasks; in the end each task is finished once.
pub async fn concurrent_workers_finish_every_task_once(queue: Queue) {
    let tasks: Vec<TaskId> = (0..40).map(|_| TaskId::new()).collect();
    for task in &tasks {
        queue.push(*task, ZERO).await.unwrap();
    }
    let mut workers = JoinSet::new();
    for worker in 0..4_u32 {
        let queue = Arc::clone(&queue);
        workers.spawn(async move {
            let mut finished = Vec::new();
            let mut round = worker;
            while queue.len().await.unwrap() > 0 {
                let Some(claim) = queue.claim(ms(150), ms(50)).await.unwrap() else { continue };
                round += 1;
                let result = match round % 4 {
                    0 => queue.retry(&claim, ms(1)).await.map(|()| false),
                    1 if round < 20 => Ok(false), // Abandons the task until its lease expires.
                    _ => queue.finish(&claim).await.map(|()| true),
                };
                match result {
                    Ok(true) => finished.push(claim.task),
                    Ok(false) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}"),
                }
            }
            finished
        });
    }
    let mut finish_counts = BTreeMap::<TaskId, u32>::new();
    while let Some(result) = workers.join_next().await {
        for task in result.unwrap() {
            *finish_counts.entry(task).or_default() += 1;
        }
    }
    assert_eq!(finish_counts.len(), tasks.len(), "every task must be finished");
    assert!(finish_counts.values().all(|count| *count == 1), "each task must be finished once");
}

/// If the future of a claim is dropped, a task that it took is claimable again when its lease ends.
pub async fn dropped_claims_lose_no_task(queue: Queue) {
    for _ in 0..5 {
        poll_once(queue.claim(ms(20), LONG));
        drop_after(ms(2), queue.claim(ms(20), LONG)).await;
    }
    let tasks: BTreeSet<TaskId> =
        [push_new_task(&queue).await, push_new_task(&queue).await, push_new_task(&queue).await].into();
    for n in 0..10 {
        poll_once(queue.claim(ms(20), LONG));
        drop_after(Duration::from_micros(n * 200), queue.claim(ms(20), LONG)).await;
    }
    // The leases of dropped claims expire; then all three tasks are claimable.
    let mut found = BTreeSet::new();
    while found.len() < 3 {
        let claim = claim(&queue, LONG).await;
        found.insert(claim.task);
        queue.finish(&claim).await.unwrap();
    }
    assert_eq!(found, tasks);
    assert_eq!(queue.len().await.unwrap(), 0);
    let late = push_new_task(&queue).await;
    assert_eq!(claim(&queue, LONG).await.task, late, "dropped claims must not consume the wake-up");
}

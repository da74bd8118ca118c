use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use lkr_domain::TaskId;
use tokio::{task::JoinSet, time::Instant};

use super::support::*;
use crate::{Claim, ErrorKind};

async fn pushed(queue: &Queue) -> TaskId {
    let task = TaskId::new();
    queue.push(task, NONE).await.unwrap();
    task
}

async fn claim(queue: &Queue, lease: Duration) -> Claim {
    queue.claim(lease, LONG).await.unwrap().expect("a task is claimable")
}

/// A claim that no longer holds is refused by all three operations, and they change nothing.
async fn assert_lost(queue: &Queue, claim: &Claim) {
    assert_kind(queue.heartbeat(claim, LONG).await, ErrorKind::LeaseLost);
    assert_kind(queue.retry(claim, NONE).await, ErrorKind::LeaseLost);
    assert_kind(queue.finish(claim).await, ErrorKind::LeaseLost);
}

/// A claimed task is claimable again after its delay, and no sooner lost.
pub async fn retry_gives_a_task_back(queue: Queue) {
    let task = pushed(&queue).await;
    for _ in 0..3 {
        let held = claim(&queue, LONG).await;
        assert_eq!(held.task, task);
        queue.retry(&held, NONE).await.unwrap();
        assert_eq!(queue.len().await.unwrap(), 1);
        assert_lost(&queue, &held).await;
        assert_eq!(queue.len().await.unwrap(), 1);
    }
    queue.finish(&claim(&queue, LONG).await).await.unwrap();
    assert_eq!(queue.len().await.unwrap(), 0);
}

/// A task that is given back with a delay is not claimable before it is over.
pub async fn retry_waits_out_its_delay(queue: Queue) {
    let task = pushed(&queue).await;
    let held = claim(&queue, LONG).await;
    let begin = Instant::now();
    queue.retry(&held, ms(150)).await.unwrap();
    let early = queue.claim(LONG, NONE).await.unwrap();
    assert!(early.is_none() || begin.elapsed() >= ms(150), "claimed too early");
    if early.is_none() {
        assert_eq!(claim(&queue, LONG).await.task, task);
        assert!(begin.elapsed() >= ms(149), "claimed after {:?}", begin.elapsed());
    }
}

/// A task that comes back stands behind those that were claimable before.
pub async fn given_back_tasks_queue_behind(queue: Queue) {
    let first = pushed(&queue).await;
    tokio::time::sleep(ms(3)).await;
    let second = pushed(&queue).await;
    let held = claim(&queue, LONG).await;
    assert_eq!(held.task, first);
    tokio::time::sleep(ms(3)).await;
    queue.retry(&held, NONE).await.unwrap();
    assert_eq!(claim(&queue, LONG).await.task, second);
    assert_eq!(claim(&queue, LONG).await.task, first);
}

/// While its lease runs, a task is nobody else's.
pub async fn claimed_tasks_are_not_claimed_again(queue: Queue) {
    let tasks: BTreeSet<TaskId> = [pushed(&queue).await, pushed(&queue).await].into();
    let held = [claim(&queue, LONG).await, claim(&queue, LONG).await];
    assert_eq!(held.iter().map(|claim| claim.task).collect::<BTreeSet<_>>(), tasks);
    assert_eq!(queue.claim(LONG, ms(30)).await.unwrap(), None);
    for claim in &held {
        queue.finish(claim).await.unwrap();
    }
}

/// When a lease ends, the next worker gets the task, and the first one's claim is worth nothing.
pub async fn a_lost_lease_passes_the_task_on(queue: Queue) {
    let task = pushed(&queue).await;
    let begin = Instant::now();
    let lost = claim(&queue, ms(100)).await;
    let taken = claim(&queue, LONG).await;
    assert!(begin.elapsed() >= ms(99), "taken over after {:?}", begin.elapsed());
    assert_eq!((lost.task, taken.task), (task, task));
    assert_ne!(lost.token, taken.token);
    assert_lost(&queue, &lost).await;
    queue.heartbeat(&taken, LONG).await.unwrap();
    queue.finish(&taken).await.unwrap();
    assert_lost(&queue, &taken).await;
}

/// A worker that comes too late, but before anybody else, still has the task.
pub async fn an_expired_lease_holds_until_it_is_taken(queue: Queue) {
    for round in 0..3 {
        pushed(&queue).await;
        let held = claim(&queue, ms(1)).await;
        tokio::time::sleep(ms(30)).await;
        match round {
            0 => {
                queue.heartbeat(&held, LONG).await.unwrap();
                assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None, "the lease runs again");
                queue.finish(&held).await.unwrap();
            }
            1 => queue.finish(&held).await.unwrap(),
            _ => queue.retry(&held, LONG).await.unwrap(),
        }
        assert_eq!(queue.claim(LONG, NONE).await.unwrap(), None);
    }
    assert_eq!(queue.len().await.unwrap(), 1);
}

/// A lease that is kept outlasts its first end, and may be cut short as well.
pub async fn a_heartbeat_keeps_the_lease(queue: Queue) {
    let task = pushed(&queue).await;
    let held = claim(&queue, ms(100)).await;
    queue.heartbeat(&held, LONG).await.unwrap();
    assert_eq!(queue.claim(LONG, ms(200)).await.unwrap(), None, "the first lease is over");
    queue.heartbeat(&held, ms(10)).await.unwrap();
    let taken = claim(&queue, LONG).await;
    assert_eq!(taken.task, task);
    assert_lost(&queue, &held).await;
}

/// What was finished or given back cannot be finished or given back again.
pub async fn a_claim_is_good_once(queue: Queue) {
    pushed(&queue).await;
    let held = claim(&queue, LONG).await;
    queue.finish(&held).await.unwrap();
    assert_lost(&queue, &held).await;
    assert_eq!(queue.len().await.unwrap(), 0);
    pushed(&queue).await;
    let held = claim(&queue, LONG).await;
    let forged = Claim { token: held.token.wrapping_add(1), ..held.clone() };
    assert_lost(&queue, &forged).await;
    let other = Claim { task: TaskId::new(), ..held.clone() };
    assert_lost(&queue, &other).await;
    queue.finish(&held).await.unwrap();
}

/// A task that was removed under its worker is lost to it, also when it is pushed anew.
pub async fn claims_of_what_was_removed_are_lost(queue: Queue) {
    let task = pushed(&queue).await;
    let held = claim(&queue, LONG).await;
    assert!(queue.remove(task).await.unwrap());
    assert_lost(&queue, &held).await;
    queue.push(task, NONE).await.unwrap();
    assert_lost(&queue, &held).await;
    assert_eq!(queue.len().await.unwrap(), 1);
    let again = claim(&queue, LONG).await;
    assert_lost(&queue, &held).await;
    queue.finish(&again).await.unwrap();
}

/// A worker that waits gets a task that another pushes or gives back.
pub async fn claim_waits_for_a_push(queue: Queue) {
    for give_back in [false, true] {
        let task = TaskId::new();
        let held = if give_back {
            queue.push(task, NONE).await.unwrap();
            Some(claim(&queue, LONG).await)
        } else {
            None
        };
        let waiter = {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move { queue.claim(LONG, LONG).await.unwrap() })
        };
        tokio::time::sleep(ms(50)).await;
        assert!(!waiter.is_finished(), "there is nothing to claim");
        let begin = Instant::now();
        match held {
            Some(held) => queue.retry(&held, NONE).await.unwrap(),
            None => queue.push(task, NONE).await.unwrap(),
        }
        let claim = waiter.await.unwrap().expect("the wait was long enough");
        assert_eq!(claim.task, task);
        assert!(begin.elapsed() < WOKEN, "it was not woken");
        queue.finish(&claim).await.unwrap();
    }
}

/// A worker that waits gets a task whose delay or lease ends meanwhile, also where that was told while it waited.
pub async fn claim_waits_for_a_delay_and_for_a_lease(queue: Queue) {
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
    let first = waiter.await.unwrap().expect("the wait was long enough");
    assert_eq!(first.task, soon);
    assert!(begin.elapsed() < WOKEN, "it slept through the end of the delay");
    let second = claim(&queue, LONG).await;
    assert_eq!(second.task, soon, "its lease has ended");
    queue.finish(&second).await.unwrap();
}

/// Eight waiters and eight pushes: each waiter gets one of the tasks.
pub async fn every_waiter_gets_a_task(queue: Queue) {
    let mut waiters = JoinSet::new();
    for _ in 0..8 {
        let queue = Arc::clone(&queue);
        waiters.spawn(async move { queue.claim(LONG, LONG).await.unwrap().map(|claim| claim.task) });
    }
    tokio::time::sleep(ms(30)).await;
    let mut expected = BTreeSet::new();
    for _ in 0..8 {
        expected.insert(pushed(&queue).await);
    }
    let mut found = BTreeSet::new();
    while let Some(done) = waiters.join_next().await {
        found.insert(done.unwrap().expect("there is a task for each"));
    }
    assert_eq!(found, expected);
}

/// With nothing to claim, the whole wait passes, and no more than that is lost.
pub async fn claim_waits_its_time_and_gives_up(queue: Queue) {
    queue.push(TaskId::new(), LONG).await.unwrap();
    for wait in [0, 20, 80] {
        let begin = Instant::now();
        assert_eq!(queue.claim(LONG, ms(wait)).await.unwrap(), None);
        assert!(begin.elapsed() + ms(1) >= ms(wait), "gave up after {:?}", begin.elapsed());
    }
}

/// Workers in parallel share the tasks out between them: each is claimed once.
pub async fn no_two_workers_get_the_same_task(queue: Queue) {
    let tasks: BTreeSet<TaskId> = (0..120).map(|_| TaskId::new()).collect();
    let mut workers = JoinSet::new();
    for _ in 0..8 {
        let queue = Arc::clone(&queue);
        workers.spawn(async move {
            let mut mine = Vec::new();
            while let Some(claim) = queue.claim(LONG, ms(300)).await.unwrap() {
                mine.push(claim.task);
                tokio::task::yield_now().await;
                if mine.len() % 2 == 0 {
                    queue.finish(&claim).await.unwrap();
                }
            }
            mine
        });
    }
    for task in &tasks {
        queue.push(*task, NONE).await.unwrap();
    }
    let mut claimed = Vec::new();
    while let Some(done) = workers.join_next().await {
        claimed.extend(done.unwrap());
    }
    assert_eq!(claimed.len(), tasks.len(), "no task came twice");
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), tasks);
}

/// Workers that finish, give back and walk away: in the end every task was finished, each by one worker.
pub async fn no_task_is_lost_between_workers(queue: Queue) {
    let tasks: Vec<TaskId> = (0..40).map(|_| TaskId::new()).collect();
    for task in &tasks {
        queue.push(*task, NONE).await.unwrap();
    }
    let mut workers = JoinSet::new();
    for worker in 0..4_u32 {
        let queue = Arc::clone(&queue);
        workers.spawn(async move {
            let mut finished = Vec::new();
            let mut turn = worker;
            while queue.len().await.unwrap() > 0 {
                let Some(claim) = queue.claim(ms(150), ms(50)).await.unwrap() else { continue };
                turn += 1;
                let done = match turn % 4 {
                    0 => queue.retry(&claim, ms(1)).await.map(|()| false),
                    1 if turn < 20 => Ok(false), // Walks away: the lease ends by itself.
                    _ => queue.finish(&claim).await.map(|()| true),
                };
                match done {
                    Ok(true) => finished.push(claim.task),
                    Ok(false) => {}
                    Err(error) => assert_eq!(error.kind(), ErrorKind::LeaseLost, "{error}"),
                }
            }
            finished
        });
    }
    let mut times = BTreeMap::<TaskId, u32>::new();
    while let Some(done) = workers.join_next().await {
        for task in done.unwrap() {
            *times.entry(task).or_default() += 1;
        }
    }
    assert_eq!(times.len(), tasks.len(), "every task was finished");
    assert!(times.values().all(|times| *times == 1), "each by one worker");
}

/// A claim whose future is dropped takes nothing for good: what it took is claimable when its lease ends.
pub async fn dropped_claims_lose_nothing(queue: Queue) {
    for _ in 0..5 {
        poll_once(queue.claim(ms(20), LONG));
        drop_after(ms(2), queue.claim(ms(20), LONG)).await;
    }
    let tasks: BTreeSet<TaskId> = [pushed(&queue).await, pushed(&queue).await, pushed(&queue).await].into();
    for n in 0..10 {
        poll_once(queue.claim(ms(20), LONG));
        drop_after(Duration::from_micros(n * 200), queue.claim(ms(20), LONG)).await;
    }
    // Leases that dropped claims hold end by and by; then all three tasks are there.
    let mut found = BTreeSet::new();
    while found.len() < 3 {
        let claim = claim(&queue, LONG).await;
        found.insert(claim.task);
        queue.finish(&claim).await.unwrap();
    }
    assert_eq!(found, tasks);
    assert_eq!(queue.len().await.unwrap(), 0);
    let late = pushed(&queue).await;
    assert_eq!(claim(&queue, LONG).await.task, late, "dropped waiters do not swallow a wake-up");
}

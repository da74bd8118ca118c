use std::sync::Arc;

use lkr_domain::TaskId;

use super::support::*;
use crate::{Lane, Work};

fn work(flow: &str, cost: u64) -> Work {
    Work { flow: flow.to_owned(), cost, is_long: false }
}

async fn enqueue(queue: &Queue, count: usize, work: &Work) -> Vec<TaskId> {
    let tasks: Vec<TaskId> = (0..count).map(|_| TaskId::new()).collect();
    for task in &tasks {
        queue.enqueue(*task, work.clone(), ZERO).await.unwrap();
    }
    tasks
}

async fn claim(queue: &Queue) -> TaskId {
    queue.claim_in(Lane::Short, LONG, LONG).await.unwrap().unwrap().task
}

/// A task of a flow that was idle is claimed next, however many tasks another flow queued before it.
pub async fn burst_of_one_flow_lets_other_flows_pass(queue: Queue) {
    let burst = enqueue(&queue, 50, &work("burst", 500_000)).await;
    assert_eq!(claim(&queue).await, burst[0]);
    assert_eq!(claim(&queue).await, burst[1]);
    let other = enqueue(&queue, 1, &work("other", 1_000)).await[0];
    assert_eq!(claim(&queue).await, other);
    assert_eq!(claim(&queue).await, burst[2], "a flow must keep its order");
}

/// Tasks count for their flow as long as they are in the queue, claimed ones too.
pub async fn tasks_are_counted_by_flow(queue: Queue) {
    assert!(queue.flows().await.unwrap().is_empty());
    let one = enqueue(&queue, 3, &work("one", 10)).await;
    enqueue(&queue, 2, &Work { is_long: true, ..work("two", 5_000_000) }).await;
    queue.push(TaskId::new(), ZERO).await.unwrap();
    let claim = queue.claim_in(Lane::Long, LONG, LONG).await.unwrap().unwrap();
    let counts = |one, two| [("one".to_owned(), one), ("two".to_owned(), two), (String::new(), 1)].into();
    assert_eq!(queue.flows().await.unwrap(), counts(3, 2));
    queue.finish(&claim).await.unwrap();
    queue.remove(one[1]).await.unwrap();
    assert_eq!(queue.flows().await.unwrap(), counts(2, 1));
    let enqueue_one = |_| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.enqueue(TaskId::new(), work("many", 10), ZERO).await })
    };
    for enqueued in (0..1_500).map(enqueue_one).collect::<Vec<_>>() {
        enqueued.await.unwrap().unwrap();
    }
    assert_eq!(queue.flows().await.unwrap()["many"], 1_500);
}

/// While two flows have tasks waiting, their served costs differ by at most one task.
pub async fn flows_take_turns_by_cost(queue: Queue) {
    let large = enqueue(&queue, 8, &work("large", 400_000)).await;
    enqueue(&queue, 60, &work("small", 30_000)).await;
    let (mut of_large, mut of_small) = (0_u64, 0_u64);
    for _ in 0..40 {
        match large.contains(&claim(&queue).await) {
            true => of_large += work("", 400_000).charge(),
            false => of_small += work("", 30_000).charge(),
        }
        let difference = of_large.abs_diff(of_small);
        assert!(difference <= work("", 400_000).charge(), "large {of_large}, small {of_small}");
    }
}

/// A worker of short tasks never gets a long one, nor the other way round.
pub async fn long_tasks_are_claimed_in_their_lane_only(queue: Queue) {
    let long = Work { is_long: true, ..work("one", 5_000_000) };
    let long = enqueue(&queue, 2, &long).await;
    assert_eq!(queue.claim_in(Lane::Short, LONG, ZERO).await.unwrap(), None);
    let short = enqueue(&queue, 1, &work("one", 10)).await;
    let first = queue.claim_in(Lane::Long, LONG, LONG).await.unwrap().unwrap();
    assert_eq!(first.task, long[0]);
    assert_eq!(claim(&queue).await, short[0]);
    assert_eq!(queue.claim_in(Lane::Short, LONG, ZERO).await.unwrap(), None);
    queue.retry(&first, ZERO).await.unwrap();
    assert_eq!(queue.claim(LONG, LONG).await.unwrap().unwrap().task, long[1]);
    assert_eq!(queue.claim(LONG, LONG).await.unwrap().unwrap().task, long[0]);
}

/// The spare lane has the flows of which nothing is claimed, however many tasks of others come before.
pub async fn flows_with_claims_are_not_in_the_spare_lane(queue: Queue) {
    let burst = enqueue(&queue, 30, &work("burst", 500_000)).await;
    let spare = async || queue.claim_in(Lane::Spare, LONG, ZERO).await.unwrap();
    let first = spare().await.unwrap();
    assert_eq!(first.task, burst[0]);
    assert_eq!(spare().await, None);
    enqueue(&queue, 1, &Work { is_long: true, ..work("long", 5_000_000) }).await;
    assert_eq!(spare().await, None, "long tasks are in no spare lane");
    let other = enqueue(&queue, 2, &work("other", 1_000)).await;
    let claimed = spare().await.unwrap();
    assert_eq!(claimed.task, other[0]);
    assert_eq!(spare().await, None);
    queue.finish(&claimed).await.unwrap();
    assert_eq!(spare().await.unwrap().task, other[1]);
    queue.retry(&first, ZERO).await.unwrap();
    assert_eq!(spare().await.unwrap().task, burst[1]);
}

/// A task that is returned to the queue waits in its own flow, behind that flow's other tasks.
pub async fn retried_task_keeps_its_flow(queue: Queue) {
    let one = enqueue(&queue, 3, &work("one", 100_000)).await;
    let first = queue.claim(LONG, LONG).await.unwrap().unwrap();
    assert_eq!(first.task, one[0]);
    queue.retry(&first, ZERO).await.unwrap();
    let two = enqueue(&queue, 2, &work("two", 100_000)).await;
    assert_eq!(claim(&queue).await, two[0]);
    let rest = [claim(&queue).await, claim(&queue).await, claim(&queue).await, claim(&queue).await];
    assert_eq!(rest.iter().filter(|task| one.contains(task)).count(), 3);
    assert_eq!(rest[3], one[0]);
}

//! Writes whose answer is lost are applied once, and copies that arrive late change nothing.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

#[path = "support/common.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{config, ms, open};
use lkr_domain::TaskId;
use lkr_state::{ErrorKind, Expect, Lane, StateStore as _, StateStoreExt as _, TaskQueue as _, Work, Write};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_history::Proxy;
use lkr_test_support::RedisServer;

const LONG: Duration = Duration::from_secs(60);
const ZERO: Duration = Duration::ZERO;

async fn start(delay: Duration) -> Option<(RedisServer, Proxy, RedisStore)> {
    let server = RedisServer::start()?;
    let proxy = Proxy::start(server.port(), delay).await.unwrap();
    let store = open(config(proxy.url())).await;
    load_scripts(&store).await;
    Some((server, proxy, store))
}

/// Runs every script once. A script that the server does not know takes two requests.
async fn load_scripts(store: &RedisStore) {
    store.state().apply(vec![Write::put("loaded", Expect::Any, "")]).await.unwrap();
    let (queue, task) = (store.queue(), TaskId::new());
    queue.push(task, ZERO).await.unwrap();
    let claim = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    queue.heartbeat(&claim, LONG).await.unwrap();
    queue.retry(&claim, ZERO).await.unwrap();
    queue.finish(&queue.claim(LONG, ZERO).await.unwrap().unwrap()).await.unwrap();
    assert!(!queue.remove(task).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn step_whose_answer_is_lost_is_applied_once() {
    let Some((_server, proxy, store)) = start(ZERO).await else { return };
    let state = store.state();
    for round in 0..10 {
        proxy.lose_answers(round % 3);
        let step = vec![
            Write::increment("count"),
            Write::put(format!("new/{round}"), Expect::Absent, "v"),
            Write::put("last", Expect::Any, round.to_string()),
        ];
        state.apply(step).await.unwrap();
    }
    assert_eq!(state.counter("count").await.unwrap(), 10);
    // The answer that was lost said that the expectation does not hold.
    proxy.lose_answers(1);
    let error = state.apply(vec![Write::put("new/1", Expect::Absent, "w")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn task_is_claimed_and_finished_once_when_answers_are_lost() {
    let Some((_server, proxy, store)) = start(ZERO).await else { return };
    let queue = store.queue();
    let tasks: Vec<TaskId> = (0..3).map(|_| TaskId::new()).collect();
    for task in &tasks {
        proxy.lose_answers(1);
        queue.enqueue(*task, Work::default(), ZERO).await.unwrap();
    }
    assert_eq!(queue.len().await.unwrap(), 3);
    proxy.lose_answers(1);
    let first = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    let second = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    assert_eq!([first.task, second.task], tasks[..2], "the repeated claim must not take another task");
    for claim in [&first, &second] {
        proxy.lose_answers(1);
        queue.heartbeat(claim, LONG).await.unwrap();
        proxy.lose_answers(1);
        queue.finish(claim).await.unwrap();
    }
    let third = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    proxy.lose_answers(1);
    queue.retry(&third, ZERO).await.unwrap();
    proxy.lose_answers(1);
    assert!(queue.remove(tasks[2]).await.unwrap());
    assert_eq!(queue.len().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copies_that_arrive_late_change_nothing() {
    let Some((_server, proxy, store)) = start(ms(300)).await else { return };
    let (state, queue) = (store.state(), store.queue());
    proxy.copy_requests(4);
    state.apply(vec![Write::put("a", Expect::Any, "old"), Write::increment("count")]).await.unwrap();
    let refused = state.apply(vec![Write::put("a", Expect::Absent, "refused")]).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Conflict);
    let task = TaskId::new();
    queue.push(task, ZERO).await.unwrap();
    let claim = queue.claim(LONG, ZERO).await.unwrap().unwrap();
    queue.finish(&claim).await.unwrap();
    // Now the refused step would hold, the first one would undo this, and the task would be queued again.
    state.apply(vec![Write::delete("a", Expect::Any)]).await.unwrap();
    proxy.wait_for_copies(4).await;
    assert_eq!(state.get("a").await.unwrap(), None);
    assert_eq!(state.counter("count").await.unwrap(), 1);
    assert_eq!(queue.len().await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn copy_after_the_deadline_is_refused_even_if_the_answer_is_forgotten() {
    let Some(server) = RedisServer::start() else { return };
    let proxy = Proxy::start(server.port(), ms(3_500)).await.unwrap();
    let short =
        RedisConfig { command_timeout: ms(1_000), write_timeout: ms(1_000), ..RedisConfig::new(proxy.url()) };
    let store = open(short).await;
    load_scripts(&store).await;
    let state = store.state();
    proxy.copy_requests(1);
    state.apply(vec![Write::increment("count")]).await.unwrap();
    let forget =
        "for _, key in ipairs(redis.call('KEYS', '*:step:*')) do redis.call('DEL', key) end return 1";
    assert_eq!(server.command(&["EVAL", forget, "0"]).unwrap(), ":1\r\n");
    proxy.wait_for_copies(1).await;
    assert_eq!(state.counter("count").await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn write_without_any_answer_is_unavailable_after_its_time() {
    let Some((_server, proxy, _)) = start(ZERO).await else { return };
    let short = RedisConfig { write_timeout: ms(600), ..RedisConfig::new(proxy.url()) };
    let state = open(short).await.state();
    proxy.lose_answers(usize::MAX);
    let begin = Instant::now();
    let error = state.apply(vec![Write::increment("count")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("unknown"), "{error}");
    assert!((ms(300)..ms(2_500)).contains(&begin.elapsed()), "{:?}", begin.elapsed());
    proxy.lose_answers(0);
    assert_eq!(state.counter("count").await.unwrap(), 1, "the copies must be applied once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claim_is_woken_by_another_process_and_without_wake_ups_it_polls() {
    let Some((server, _, store)) = start(ZERO).await else { return };
    let other = open(config(server.url())).await.queue();
    for round in 0..4 {
        let queue = store.queue();
        let waiting =
            tokio::spawn(async move { queue.claim_in(Lane::Any, LONG, LONG).await.unwrap().unwrap() });
        tokio::time::sleep(ms(200)).await;
        if round == 3 {
            // Both connections of the wake-ups end.
            server.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        }
        let (task, begin) = (TaskId::new(), Instant::now());
        other.push(task, ZERO).await.unwrap();
        assert_eq!(waiting.await.unwrap().task, task);
        let limit = if round == 3 { ms(5_000) } else { ms(500) };
        assert!(begin.elapsed() < limit, "round {round}: woken after {:?}", begin.elapsed());
    }
}

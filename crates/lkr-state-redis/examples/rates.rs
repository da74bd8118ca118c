//! Measures a server: `rates URL [TASKS]`. It uses a random prefix and removes nothing from the server.
//!
//! Prints how many steps, reads and claims are done in a second, by one caller and by sixteen, and what a claim takes while
//! `TASKS` tasks of one flow are queued (by default 100,000).

use std::{
    env,
    io::Write as _,
    time::{Duration, Instant},
};

use lkr_domain::TaskId;
use lkr_state::{Expect, Lane, ScanOrder, StateStore, TaskQueue, Work, Write};
use lkr_state_redis::{RedisConfig, RedisQueue, RedisState, RedisStore};
use tokio::task::JoinSet;

type Error = Box<dyn std::error::Error + Send + Sync>;

const CALLS: usize = 2_000;
const CALLERS: usize = 16;
const LEASE: Duration = Duration::from_secs(3_600);

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [url, rest @ ..] = args.as_slice() else { return Err("usage: rates URL [TASKS]".into()) };
    let tasks: usize = rest.first().map_or(Ok(100_000), |tasks| tasks.parse())?;
    let prefix = TaskId::new().to_string();
    let config = RedisConfig { prefix, allow_weak_durability: true, ..RedisConfig::new(url.as_str()) };
    let opened = RedisStore::open(config.clone(), None).await?;
    let other = RedisStore::open(config, None).await?.store.queue();
    for warning in &opened.warnings {
        print_line(warning);
    }
    let (state, queue) = (opened.store.state(), opened.store.queue());
    measure_state(&state).await?;
    measure_wake(&queue, &other).await?;
    measure_queue(&queue, tasks).await
}

async fn measure_state(state: &RedisState) -> Result<(), Error> {
    for callers in [1, CALLERS] {
        let value = vec![b'v'; 500];
        report(&format!("steps of one write, {callers} at once"), callers, |n| {
            let (state, value) = (state.clone(), value.clone());
            async move { state.apply(vec![Write::put(format!("key/{n:06}"), Expect::Any, value)]).await }
        })
        .await?;
        report(&format!("reads of one key, {callers} at once"), callers, |n| {
            let state = state.clone();
            async move { state.get_many(&[format!("key/{n:06}")]).await.map(drop) }
        })
        .await?;
        report(&format!("scans of 100 records, {callers} at once"), callers, |n| {
            let (state, after) = (state.clone(), format!("key/{:06}", n % (CALLS - 100)));
            async move { state.scan("key/", Some(&after), ScanOrder::Ascending, 100).await.map(drop) }
        })
        .await?;
    }
    Ok(())
}

/// How long after its enqueueing a waiting claim of another store gets a task.
async fn measure_wake(queue: &RedisQueue, other: &RedisQueue) -> Result<(), Error> {
    const ROUNDS: u32 = 50;
    let mut waited = Duration::ZERO;
    for _ in 0..ROUNDS {
        let other = other.clone();
        let waiting = tokio::spawn(async move {
            let claim = other.claim(LEASE, Duration::from_secs(30)).await?;
            Ok::<_, lkr_state::Error>((claim, Instant::now(), other))
        });
        tokio::time::sleep(Duration::from_millis(20)).await;
        queue.push(TaskId::new(), Duration::ZERO).await?;
        let queued = Instant::now();
        let (claim, claimed, other) = waiting.await??;
        waited += claimed.saturating_duration_since(queued);
        if let Some(claim) = claim {
            other.finish(&claim).await?;
        }
    }
    print_line(&format!("a waiting claim of another process gets a task after {:?}", waited / ROUNDS));
    Ok(())
}

async fn measure_queue(queue: &RedisQueue, tasks: usize) -> Result<(), Error> {
    for queued in [0, tasks] {
        let work = |flow: &str| Work { flow: flow.to_owned(), cost: 10_000, is_long: false };
        enqueue(queue, queued, &work("burst")).await?;
        enqueue(queue, CALLS, &work("other")).await?;
        print_line(&format!("{} tasks are queued", queue.len().await?));
        for lane in [Lane::Spare, Lane::Any] {
            let begin = Instant::now();
            let mut claims = 0_u32;
            while claims < 500 {
                let Some(claim) = queue.claim_in(lane, LEASE, Duration::ZERO).await? else { break };
                queue.finish(&claim).await?;
                claims += 1;
            }
            print_line(&format!("claim and finish, {lane:?}: {:?} each", begin.elapsed() / claims.max(1)));
        }
        let begin = Instant::now();
        let held = queue.claim_in(Lane::Spare, LEASE, Duration::ZERO).await?.into_iter().len();
        let other = queue.claim_in(Lane::Spare, LEASE, Duration::ZERO).await?.into_iter().len();
        let none = queue.claim_in(Lane::Spare, LEASE, Duration::ZERO).await?.into_iter().len();
        print_line(&format!("three claims of spare flows ({held}, {other}, {none}): {:?}", begin.elapsed()));
    }
    report(&format!("claims and ends of tasks, {CALLERS} at once"), CALLERS, |_| {
        let queue = queue.clone();
        async move {
            match queue.claim(LEASE, Duration::ZERO).await? {
                Some(claim) => queue.finish(&claim).await,
                None => Ok(()),
            }
        }
    })
    .await
}

async fn enqueue(queue: &RedisQueue, count: usize, work: &Work) -> Result<(), Error> {
    let begin = Instant::now();
    let mut callers = JoinSet::new();
    for caller in 0..CALLERS {
        let (queue, work) = (queue.clone(), work.clone());
        let own = count / CALLERS + usize::from(caller < count % CALLERS);
        callers.spawn(async move {
            for _ in 0..own {
                queue.enqueue(TaskId::new(), work.clone(), Duration::ZERO).await?;
            }
            Ok::<_, lkr_state::Error>(())
        });
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    if count > 0 {
        let rate = count as f64 / begin.elapsed().as_secs_f64();
        print_line(&format!("queued tasks, {CALLERS} at once: {rate:.0}/s"));
    }
    Ok(())
}

/// Makes [`CALLS`] calls by so many callers, and prints the rate.
async fn report<F>(what: &str, callers: usize, call: impl Fn(usize) -> F) -> Result<(), Error>
where
    F: Future<Output = lkr_state::Result<()>> + Send + 'static,
{
    let begin = Instant::now();
    let mut running = JoinSet::new();
    for n in 0..CALLS {
        if running.len() >= callers
            && let Some(done) = running.join_next().await
        {
            done??;
        }
        running.spawn(call(n));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    print_line(&format!("{what}: {:.0}/s", CALLS as f64 / begin.elapsed().as_secs_f64()));
    Ok(())
}

fn print_line(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

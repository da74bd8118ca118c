//! What a second process on the same machine gives. `cargo xtask several ratios` runs it; it measures, and checks only that
//! nothing fails.

use std::{
    env, fs,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use lkr_tests::{Role, SECTIONS, Seed, Server, SharedStores, model_dir, survey, word};
use serde_json::json;

/// How long searches are measured.
const SEARCHES: Duration = Duration::from_secs(15);

/// The concurrent clients of searches.
const CLIENTS: usize = 8;

/// The processor time of a process so far, in seconds.
fn processor_seconds(pid: u32) -> f64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(") ").unwrap();
    let ticks: u64 = fields.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // Linux counts in hundredths of a second on every architecture.
    ticks as f64 / 100.0
}

/// The processor time of the whole machine so far, in seconds.
fn machine_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let fields: Vec<u64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    // All but the times when nothing ran.
    (fields.iter().take(8).sum::<u64>() - fields[3] - fields[4]) as f64 / 100.0
}

/// A phase: its wall time, and the processor time of each process in it, and of the whole machine.
struct Phase {
    wall: f64,
    machine: f64,
    processor: Vec<(&'static str, f64)>,
}

fn measure(processes: &[(&'static str, u32)], work: impl FnOnce()) -> Phase {
    let before: Vec<f64> = processes.iter().map(|(_, pid)| processor_seconds(*pid)).collect();
    let (begun, machine_before) = (Instant::now(), machine_seconds());
    work();
    let (wall, machine) = (begun.elapsed().as_secs_f64(), machine_seconds() - machine_before);
    let spent = processes.iter().zip(before);
    let processor = spent.map(|((name, pid), before)| (*name, processor_seconds(*pid) - before)).collect();
    Phase { wall, machine, processor }
}

impl Phase {
    fn shares(&self) -> String {
        let shares = self
            .processor
            .iter()
            .map(|(name, seconds)| format!("{name} {:.0} %", 100.0 * seconds / self.wall));
        format!(
            "machine {:.0} %: {}",
            100.0 * self.machine / self.wall,
            shares.collect::<Vec<_>>().join(", ")
        )
    }
}

/// Ingests surveys with these workers, and returns the chunks per second and the phase.
fn ingest(
    api: &Server,
    workers: &[&Server],
    processes: &[(&'static str, u32)],
    from: u64,
    documents: u64,
) -> (f64, Phase) {
    let mut seed = Seed::announce("shared_ratios");
    let tasks: Vec<String> = (from..from + documents)
        .map(|n| api.submit(&survey(n, &mut seed))["task_id"].as_str().unwrap().to_owned())
        .collect();
    let phase = measure(processes, || {
        workers.iter().for_each(|worker| worker.restart());
        for task in &tasks {
            assert_eq!(api.wait_for_task(task)["status"], "done");
        }
    });
    workers.iter().for_each(|worker| worker.stop());
    ((documents * SECTIONS) as f64 / phase.wall, phase)
}

fn search(servers: &[&Server], processes: &[(&'static str, u32)]) -> (f64, Phase) {
    let done = AtomicUsize::new(0);
    let phase = measure(processes, || {
        thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (done, server) = (&done, servers[client % servers.len()]);
                let mut seed = Seed::announce("shared_ratios");
                scope.spawn(move || {
                    let begun = Instant::now();
                    while begun.elapsed() < SEARCHES {
                        let query = format!("{} {} {}", word(&mut seed), word(&mut seed), seed.draw());
                        let answer = server.post("/search", &json!({"query": query, "top_k": 10}));
                        assert_eq!(answer.status, 200, "{answer:?}");
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
    });
    (done.load(Ordering::Relaxed) as f64 / phase.wall, phase)
}

/// Prints the rates of one process, two, and one again, and what took the processor meanwhile.
fn print_ratio(what: &str, rates: &[(f64, Phase)]) {
    let [first, two, last] = [0, 1, 2].map(|phase| rates[phase].0);
    let ratio = two / f64::midpoint(first, last);
    eprintln!("{what}: one {first:.1} and {last:.1}, two {two:.1}: {ratio:.2} x");
    rates.iter().for_each(|(_, phase)| eprintln!("  {}", phase.shares()));
}

#[test]
fn second_process_is_compared_with_one() {
    if env::var_os("LKR_E2E_RATIOS").is_none() {
        eprintln!("skipped: ratios are measured by `cargo xtask several ratios`");
        return;
    }
    let (Some(stores), Some(model)) = (SharedStores::start(), model_dir()) else { return };
    let model = [("LKR_MODEL_DIR", model.to_str().unwrap())];
    let documents = 60;
    let (one, other) = (stores.server_with(Role::Api, &model), stores.server_with(Role::Api, &model));
    let (first, second) =
        (stores.server_with(Role::Worker, &model), stores.server_with(Role::Worker, &model));
    first.stop();
    second.stop();
    let others = [("redis", stores.redis.pid()), ("tests", std::process::id())];
    let with = |servers: &[(&'static str, &Server)]| -> Vec<(&'static str, u32)> {
        servers.iter().map(|(name, server)| (*name, server.pid())).chain(others).collect()
    };
    // The one that was measured first is measured again at the end.
    let rates: Vec<(f64, Phase)> = [&[&first][..], &[&first, &second], &[&first]]
        .into_iter()
        .zip(0..)
        .map(|(workers, round)| ingest(&one, workers, &others, round * documents, documents))
        .collect();
    print_ratio("ingestion, chunks/s, workers", &rates);
    let rounds = [&[&one][..], &[&one, &other], &[&one]];
    let names: [&[(&'static str, &Server)]; 3] =
        [&[("server", &one)], &[("server", &one), ("server", &other)], &[("server", &one)]];
    let rates: Vec<(f64, Phase)> =
        rounds.into_iter().zip(names).map(|(servers, named)| search(servers, &with(named))).collect();
    print_ratio(&format!("searches/s at {CLIENTS} clients, servers"), &rates);
}

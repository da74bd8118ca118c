//! The run of a history: clients as processes, each behind a proxy, and what disturbs them.

use std::{
    collections::BTreeMap,
    env,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_state::{StateStore, TaskQueue};
use lkr_test_history::{Anomaly, Clock, LeaseTimes, Operation, Proxy, check_queue, check_state, load, now};
use lkr_test_support::{RedisServer, skip};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::sleep;

use crate::{
    client::{self, Recording, Role, Settings},
    common::{config, ms, open},
    disturbance::Disturbance,
    queue_client, state_client,
    variants::Variant,
};

/// Three clients of the store and two workers.
const ROLES: [Role; 5] = [Role::State, Role::State, Role::State, Role::Queue, Role::Queue];

/// The largest distance of a clock from the real time in seconds. Between the two ends lie less than the two minutes for which
/// Redis keeps the answer of a step after its deadline.
const FARTHEST: i64 = 55;

/// How long clients may take to end, and the queue to become empty.
const END: Duration = Duration::from_secs(12);

/// Whether the clocks of the server and the clients are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clocks {
    Right,
    Set,
}

/// A running history.
pub(crate) struct Run {
    pub(crate) seed: u64,
    variant: Variant,
    folder: TempDir,
    server: RedisServer,
    /// The clock of the server, if it is to be set.
    server_clock: Option<Clock>,
    clients: Vec<Client>,
    next_process: u32,
    random: StdRng,
    /// What was done how often.
    pub(crate) counts: BTreeMap<Disturbance, usize>,
}

/// A place at which one process after another runs.
struct Client {
    role: Role,
    proxy: Proxy,
    process: Child,
    clock: Option<Clock>,
    /// When a stopped process goes on.
    continues: Option<Instant>,
}

impl Run {
    /// Starts a server and the clients; `None` with a visible skip without Redis. If clocks are to be set, also without a way
    /// to do that.
    pub(crate) async fn start(variant: Variant, clocks: Clocks) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let server_clock = match clocks {
            Clocks::Set => Some(clock(&folder, "server")?),
            Clocks::Right => None,
        };
        let environment = server_clock.as_ref().map(Clock::environment).unwrap_or_default();
        let server = RedisServer::start_in(environment)?;
        let seed =
            env::var("LKR_HISTORY_SEED").map_or_else(|_| rand::rng().random(), |seed| seed.parse().unwrap());
        println!("{variant:?}: LKR_HISTORY_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut clients = Vec::new();
        for (process, role) in (1..).zip(ROLES) {
            let proxy = Proxy::start(server.port(), ms(random.random_range(100..1_500))).await.unwrap();
            let clock = match clocks {
                Clocks::Set => clock(&folder, &process.to_string()),
                Clocks::Right => None,
            };
            let settings =
                Settings { role, variant, process, port: proxy.port(), folder: folder.path().to_owned() };
            let process = launch(&settings, clock.as_ref());
            clients.push(Client { role, proxy, process, clock, continues: None });
        }
        let (next_process, counts) = (100, BTreeMap::new());
        Some(Self { seed, variant, folder, server, server_clock, clients, next_process, random, counts })
    }

    /// Disturbs the clients and the server for so long.
    pub(crate) async fn disturb_for(&mut self, time: Duration) {
        let begin = Instant::now();
        while begin.elapsed() < time {
            sleep(ms(self.random.random_range(20..250))).await;
            self.continue_stopped(Instant::now());
            self.disturb().await;
        }
    }

    /// What was recorded until now. The operations that run have no outcome yet.
    pub(crate) fn anomalies_until_now(&self) -> Vec<Anomaly> {
        let history = load(self.folder.path(), now()).unwrap();
        let mut anomalies = check_state(&history);
        anomalies.extend(check_queue(&history, LeaseTimes::Checked, false));
        anomalies
    }

    /// Ends all disturbances and the clients, reads all records, finishes all tasks, and returns the history.
    pub(crate) async fn finish(&mut self) -> Vec<Operation> {
        self.continue_stopped(Instant::now() + END);
        for client in &mut self.clients {
            client.proxy.heal();
            drop(client.process.stdin.take());
        }
        for client in &mut self.clients {
            let begin = Instant::now();
            while client.process.try_wait().unwrap().is_none() {
                assert!(begin.elapsed() < END, "a client does not end");
                sleep(ms(10)).await;
            }
        }
        if let Some(clock) = &self.server_clock {
            // All leases and delays have ended then.
            clock.set(FARTHEST + 1).unwrap();
        }
        self.read_and_drain().await;
        load(self.folder.path(), u64::MAX).unwrap()
    }

    async fn read_and_drain(&self) {
        let settings = Settings {
            role: Role::State,
            variant: Variant::Correct,
            process: 0,
            port: self.server.port(),
            folder: self.folder.path().to_owned(),
        };
        let (recording, store) = (Recording::new(&settings), open(config(self.server.url())).await);
        let (state, queue): (Arc<dyn StateStore>, Arc<dyn TaskQueue>) =
            (Arc::new(store.state()), Arc::new(store.queue()));
        let mut keys: Vec<String> = state_client::KEYS.map(str::to_owned).to_vec();
        let counters = state.scan("count/", None, lkr_state::ScanOrder::Ascending, 100_000).await.unwrap();
        keys.extend(counters.into_iter().map(|(key, _)| key));
        state_client::read(&state, &recording, keys).await.unwrap();
        state_client::scan(&state, &recording).await.unwrap();
        let begin = Instant::now();
        while queue.len().await.unwrap() > 0 {
            assert!(begin.elapsed() < END, "the queue does not become empty");
            if let Some(claim) = queue_client::claim(&queue, &recording, END, ms(500)).await {
                queue_client::finish(&queue, &recording, &claim).await;
            }
        }
    }

    /// The folder of the records, which stays.
    pub(crate) fn keep(self) -> String {
        let Self { folder, .. } = self;
        folder.keep().display().to_string()
    }

    fn continue_stopped(&mut self, now: Instant) {
        for client in &mut self.clients {
            if client.continues.take_if(|at| *at <= now).is_some() {
                signal(&client.process, Signal::CONT);
            }
        }
    }

    async fn disturb(&mut self) {
        let what = match self.variant.met_by() {
            Some(disturbance) if self.random.random_ratio(1, 2) => disturbance,
            _ => Disturbance::random(&mut self.random),
        };
        let chosen = self.random.random_range(0..self.clients.len());
        let (count, pause) = (self.random.random_range(1..4), ms(self.random.random_range(400..900)));
        let short = ms(self.random.random_range(0..300));
        let client = &mut self.clients[chosen];
        match what {
            Disturbance::Kill => self.restart_client(chosen),
            Disturbance::Stop if client.continues.is_none() => {
                signal(&client.process, Signal::STOP);
                client.continues = Some(Instant::now() + pause);
            }
            Disturbance::Stop => return,
            Disturbance::Cut => client.proxy.cut(),
            Disturbance::CutAll => self.clients.iter().for_each(|client| client.proxy.cut()),
            Disturbance::LoseAnswers => client.proxy.lose_answers(count),
            Disturbance::RepeatRequests => client.proxy.copy_requests(count),
            // Often none, so that delays end.
            Disturbance::Delay => {
                client.proxy.delay(self.random.random_range(0_u64..300).saturating_sub(100));
            }
            Disturbance::KillServer => {
                self.server.kill();
                sleep(short).await;
                self.server.restart();
            }
            Disturbance::StopServer => {
                self.server.stop();
                sleep(pause).await;
                self.server.cont();
            }
            Disturbance::SetClock => match &client.clock {
                Some(clock) => clock.set(self.random.random_range(-100_000..100_000)).unwrap(),
                None => return,
            },
            Disturbance::SetServerClock => match &self.server_clock {
                Some(clock) => clock.set(self.random.random_range(-FARTHEST..=FARTHEST)).unwrap(),
                None => return,
            },
        }
        *self.counts.entry(what).or_default() += 1;
    }

    /// Kills a client as kill -9 does, and starts another one in its place.
    fn restart_client(&mut self, chosen: usize) {
        let client = &mut self.clients[chosen];
        client.end();
        let settings = Settings {
            role: client.role,
            variant: self.variant,
            process: self.next_process,
            port: client.proxy.port(),
            folder: self.folder.path().to_owned(),
        };
        self.next_process += 1;
        client.continues = None;
        client.process = launch(&settings, client.clock.as_ref());
    }
}

impl Client {
    fn end(&mut self) {
        let _already_ended = self.process.kill();
        let _already_ended = self.process.wait();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end();
    }
}

/// A clock with its files in a folder; `None` with a visible skip where that cannot be.
fn clock(folder: &TempDir, name: &str) -> Option<Clock> {
    let clock = Clock::new(folder.path(), name);
    clock.map_err(|error| skip(&format!("clocks of processes cannot be set: {error}"))).ok()
}

fn launch(settings: &Settings, clock: Option<&Clock>) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "client_process", "--nocapture", "--test-threads=1"]);
    command.env(client::VARIABLE, settings.to_text());
    if let Some(clock) = clock {
        command.envs(clock.environment());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    command.spawn().unwrap()
}

fn signal(process: &Child, signal: Signal) {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw).unwrap();
    // It may have ended.
    let _sent = kill_process(pid, signal);
}

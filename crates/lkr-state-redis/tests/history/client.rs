//! A client: a process that runs random operations and records them until its standard input ends.

use std::{
    env,
    io::{self, Read as _},
    path::PathBuf,
    process, str,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use lkr_state::{ErrorKind, Result, StateStore, TaskQueue};
use lkr_state_redis::{RedisConfig, RedisStore};
use lkr_test_history::{Call, Outcome, Recorder};
use tokio::time::sleep;

use crate::{
    common::ms,
    queue_client, state_client,
    variants::{self, Variant},
};

/// The variable that makes a process of the test a client: its settings.
pub(crate) const VARIABLE: &str = "LKR_HISTORY_CLIENT";

/// How long a client may take to end after its standard input has ended.
const END: Duration = Duration::from_secs(8);

/// The calls that a client makes at once. Workers mostly wait.
const STATE_LANES: u32 = 2;
const QUEUE_LANES: u32 = 5;

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    State,
    Queue,
}

/// What a client is told.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) role: Role,
    pub(crate) variant: Variant,
    /// The number of the process in the history.
    pub(crate) process: u32,
    /// The port of Redis, or of the proxy before it.
    pub(crate) port: u16,
    /// Where the client records.
    pub(crate) folder: PathBuf,
}

impl Settings {
    pub(crate) fn to_text(&self) -> String {
        let role = if self.role == Role::State { "state" } else { "queue" };
        let (variant, folder) = (self.variant.name(), self.folder.display());
        format!("{role} {variant} {} {} {folder}", self.process, self.port)
    }

    fn from_text(text: &str) -> Self {
        let [role, variant, process, port, folder] = text.splitn(5, ' ').collect::<Vec<_>>()[..] else {
            panic!("{VARIABLE}={text}");
        };
        Self {
            role: if role == "state" { Role::State } else { Role::Queue },
            variant: Variant::named(variant),
            process: process.parse().unwrap(),
            port: port.parse().unwrap(),
            folder: folder.into(),
        }
    }
}

/// Records the calls of a client.
pub(crate) struct Recording {
    recorder: Recorder,
    /// The number of the process.
    pub(crate) process: u32,
    stopping: AtomicBool,
}

impl Recording {
    pub(crate) fn new(settings: &Settings) -> Self {
        let recorder = Recorder::create(&settings.folder, settings.process).unwrap();
        Self { recorder, process: settings.process, stopping: AtomicBool::new(false) }
    }

    pub(crate) fn goes_on(&self) -> bool {
        !self.stopping.load(Ordering::Relaxed)
    }

    /// Records a call with its outcome. `None` without an answer, after a short pause.
    pub(crate) async fn record<T>(
        &self,
        call: Call,
        calling: impl Future<Output = Result<T>>,
        outcome: impl FnOnce(&T) -> Outcome,
    ) -> Option<T> {
        let number = self.recorder.begin(call).unwrap();
        let answer = calling.await;
        let recorded = match &answer {
            Ok(answer) => outcome(answer),
            Err(error) => match error.kind() {
                ErrorKind::Conflict => Outcome::Conflict,
                ErrorKind::LeaseLost => Outcome::Lost,
                ErrorKind::Unavailable => Outcome::Unknown,
                _ => Outcome::Failed(error.to_string()),
            },
        };
        let is_unknown = recorded == Outcome::Unknown;
        self.recorder.end(number, recorded).unwrap();
        if is_unknown {
            sleep(ms(20)).await;
        }
        answer.ok()
    }
}

/// Runs as a client if the variable says so. The process ends here then.
pub(crate) fn run_if_client() {
    let Ok(text) = env::var(VARIABLE) else { return };
    let settings = Settings::from_text(&text);
    let recording = Arc::new(Recording::new(&settings));
    let stopping = Arc::clone(&recording);
    thread::spawn(move || {
        let _end = io::stdin().read_to_end(&mut Vec::new());
        stopping.stopping.store(true, Ordering::Relaxed);
        thread::sleep(END);
        process::exit(1);
    });
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(run(settings, recording));
    process::exit(0);
}

async fn run(settings: Settings, recording: Arc<Recording>) {
    let config = RedisConfig {
        connect_timeout: ms(500),
        command_timeout: ms(400),
        write_timeout: ms(1_000),
        pool_size: 4,
        ..RedisConfig::new(format!("redis://127.0.0.1:{}", settings.port))
    };
    let store = loop {
        match RedisStore::open(config.clone(), None).await {
            Ok(opened) => break opened.store,
            Err(error) if error.kind() == ErrorKind::Unavailable => sleep(ms(50)).await,
            Err(error) => panic!("{error}"),
        }
        if !recording.goes_on() {
            return;
        }
    };
    let state: Arc<dyn StateStore> = variants::state(settings.variant, store.state());
    let queue: Arc<dyn TaskQueue> = variants::queue(settings.variant, store.queue());
    let lanes = if settings.role == Role::State { STATE_LANES } else { QUEUE_LANES };
    let lanes: Vec<_> = (0..lanes)
        .map(|lane| {
            let (state, queue, recording) = (Arc::clone(&state), Arc::clone(&queue), Arc::clone(&recording));
            tokio::spawn(async move {
                match settings.role {
                    Role::State => state_client::run(state, &recording, lane).await,
                    Role::Queue => queue_client::run(queue, &recording).await,
                }
            })
        })
        .collect();
    for lane in lanes {
        lane.await.unwrap();
    }
}

//! Three servers and two workers on shared stores, each behind a proxy of its own in front of Redis, and requests to them.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use lkr_test_history::{Away, Clock, Proxy, now};
use lkr_tests::{ADMIN_PASSWORD, Response, Role, Server, SharedStores};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// The servers come first, and then the workers.
pub(super) const SERVERS: usize = 3;
const ROLES: [Role; 5] = [Role::Api, Role::Api, Role::Api, Role::Worker, Role::Worker];

/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(12);

/// How often the logs are read.
const LOG_PAUSE: Duration = Duration::from_millis(20);

/// What a process logs when Redis left and when it is back.
const LEFT: &str = "the remote store is away";
const BACK: &str = "the remote store is back";

/// The service, and a place for each of its processes.
pub(super) struct Service {
    pub(super) stores: Mutex<SharedStores>,
    pub(super) members: Vec<Member>,
    agent: ureq::Agent,
    /// Runs the proxies.
    _runtime: Runtime,
    _clocks: TempDir,
    pub(super) admin: String,
    /// Numbers for texts, sessions and everything else that must have its own.
    numbers: AtomicU64,
}

/// A place at which one process after another runs.
pub(super) struct Member {
    role: Role,
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    pub(super) clock: Option<Clock>,
    /// When the process was killed that the watcher of the log has not noted yet; 0 if there is none.
    killed: AtomicU64,
}

/// A request.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Below `/api/v1`.
    pub(super) path: &'a str,
    pub(super) body: Option<Value>,
    pub(super) credential: Option<&'a str>,
    pub(super) idempotency: Option<&'a str>,
}

impl<'a> Request<'a> {
    pub(super) fn get(path: &'a str, credential: &'a str) -> Self {
        Self { method: "GET", path, body: None, credential: Some(credential), idempotency: None }
    }

    pub(super) fn post(path: &'a str, body: Value) -> Self {
        Self { method: "POST", path, body: Some(body), credential: None, idempotency: None }
    }

    pub(super) fn with(self, credential: &'a str) -> Self {
        Self { credential: Some(credential), ..self }
    }

    pub(super) fn method(self, method: &'a str) -> Self {
        Self { method, ..self }
    }
}

/// An answer, and between which times it came about.
pub(super) struct Reply {
    pub(super) start: u64,
    pub(super) end: u64,
    /// 0 if no answer came.
    pub(super) status: u16,
    pub(super) data: Value,
}

impl Service {
    /// Starts all processes; `None` with a visible skip without what the stores need.
    pub(super) fn start() -> Option<Self> {
        let stores = SharedStores::start()?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let clocks = tempfile::tempdir().unwrap();
        let member = |(number, role): (usize, Role)| {
            let port = stores.redis.port();
            let proxy =
                runtime.block_on(Proxy::start(port, Duration::from_millis(300 + 200 * number as u64)));
            let proxy = proxy.unwrap();
            let clock = Clock::new(clocks.path(), &number.to_string());
            let skipped = |error| lkr_test_support::note_skip(&format!("clocks are not set: {error}"));
            let clock = clock.map_err(skipped).ok();
            let mut server = stores.stopped_server(role);
            server.set("LKR_REDIS_URL", &proxy.url());
            server.set("LKR_TRUSTED_PROXIES", "127.0.0.1");
            for (key, value) in clock.iter().flat_map(Clock::environment) {
                server.set(&key, value.to_str().unwrap());
            }
            Member { role, server, proxy, clock, killed: AtomicU64::new(0) }
        };
        let members: Vec<Member> = ROLES.into_iter().enumerate().map(member).collect();
        // The first one makes the account of the admin.
        members[0].server.restart();
        thread::scope(|scope| {
            members[1..].iter().for_each(|member| drop(scope.spawn(|| member.server.restart())));
        });
        let admin = members[0].server.admin().to_owned();
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections(0)
            .timeout_global(Some(PATIENCE))
            .build()
            .new_agent();
        let numbers = AtomicU64::new(1);
        let stores = Mutex::new(stores);
        Some(Self { stores, members, agent, _runtime: runtime, _clocks: clocks, admin, numbers })
    }

    /// A number that was not given before.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Asks a server.
    pub(super) fn ask(&self, server: usize, request: Request<'_>) -> Reply {
        let Request { method, path, body, credential, idempotency } = request;
        let url = format!("{}/api/v1{path}", self.members[server].server.url());
        let mut builder = ureq::http::Request::builder().method(method).uri(url);
        // Failed logins are counted by address. So many are not what is tried here.
        let number = self.number();
        builder = builder.header("X-Forwarded-For", format!("10.{}.{}.1", number / 256 % 256, number % 256));
        if let Some(credential) = credential {
            builder = builder.header("Authorization", format!("Bearer {credential}"));
        }
        if let Some(key) = idempotency {
            builder = builder.header("Idempotency-Key", key);
        }
        let start = now();
        let answer = match body {
            Some(body) => {
                let builder = builder.header("Content-Type", "application/json");
                self.agent.run(builder.body(body.to_string()).unwrap())
            }
            None => self.agent.run(builder.body(()).unwrap()),
        };
        let read = answer.ok().and_then(|mut answer| {
            let status = answer.status().as_u16();
            let body: Value = answer.body_mut().read_json().ok()?;
            Some((status, body["data"].clone()))
        });
        let (status, data) = read.unwrap_or((0, Value::Null));
        Reply { start, end: now(), status, data }
    }

    /// What a process says that does not use Redis; `None` if all do.
    pub(super) fn missing(&self) -> Option<String> {
        self.members.iter().find_map(|member| {
            let ready = member.server.try_call("GET", "/readyz", None, None);
            let is_ready = |ready: &Response| {
                ready.status == 200 && ready.json["data"]["dependencies"]["state"] == json!("ok")
            };
            (!ready.as_ref().is_ok_and(is_ready)).then(|| format!("{:?}: {ready:?}", member.role))
        })
    }

    /// Reads the logs of the servers until `stop`, and returns when which of them went on without Redis.
    pub(super) fn watch(&self, stop: &AtomicBool) -> Vec<Away> {
        let mut logs: Vec<Log> = (0..SERVERS).map(|_| Log::default()).collect();
        let found = Mutex::new(Vec::new());
        loop {
            let is_last = stop.load(Ordering::SeqCst);
            for (process, log) in (0..).zip(&mut logs) {
                log.read(process, &self.members[process as usize], &found);
            }
            if is_last {
                let lasting = (0..)
                    .zip(&logs)
                    .filter_map(|(process, log)| Some(Away { process, from: log.away?, until: None }));
                let mut found = found.into_inner().unwrap();
                found.extend(lasting);
                return found;
            }
            thread::sleep(LOG_PAUSE);
        }
    }
}

/// What was read of a server's log.
#[derive(Default)]
struct Log {
    offset: u64,
    /// The beginning of a line that is not complete.
    rest: String,
    /// When it was read before.
    before: u64,
    /// Since when the server goes on without Redis.
    away: Option<u64>,
}

impl Log {
    /// Notes what the lines say that came since it was read before. They were written between the two times.
    fn read(&mut self, process: u32, member: &Member, found: &Mutex<Vec<Away>>) {
        let killed = member.killed.swap(0, Ordering::SeqCst);
        let before = std::mem::replace(&mut self.before, now());
        let Ok(mut file) = File::open(member.server.folder().join("log")) else {
            return self.note_kill(killed);
        };
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(self.offset)).unwrap();
        file.read_to_end(&mut text).unwrap();
        self.offset += text.len() as u64;
        self.rest += &String::from_utf8_lossy(&text);
        // Lines of a process before it was killed say nothing about the one after it.
        let lines = self.rest.rfind('\n').map_or(0, |end| end + 1);
        let complete: String = self.rest.drain(..lines).collect();
        for line in complete.lines() {
            if line.contains(LEFT) {
                self.away.get_or_insert(before);
            } else if line.contains(BACK)
                && let Some(from) = self.away.take()
            {
                found.lock().unwrap().push(Away { process, from, until: Some(now()) });
            }
        }
        self.note_kill(killed);
    }

    fn note_kill(&mut self, killed: u64) {
        if killed > 0 {
            self.away.get_or_insert(killed);
        }
    }
}

impl Member {
    /// Ends the process as kill -9 does.
    pub(super) fn kill(&self) {
        let at = now();
        self.server.kill();
        self.killed.store(at, Ordering::SeqCst);
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.server.pid()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Waits until the watcher has noted the last kill, before what the next process logs. Nobody watches a worker.
    pub(super) fn wait_until_kill_is_noted(&self) {
        while self.role == Role::Api && self.killed.load(Ordering::SeqCst) > 0 {
            thread::sleep(LOG_PAUSE);
        }
    }

    /// Sets its clock to so many seconds from the real time.
    pub(super) fn set_clock(&self, seconds: i64) {
        self.clock.iter().for_each(|clock| clock.set(seconds).unwrap());
    }
}

/// The session of an answer to a login or a change of the password.
pub(super) fn session_of(reply: &Reply) -> Option<String> {
    reply.data["access_token"].as_str().map(str::to_owned)
}

/// A login of an account.
pub(super) fn log_in(username: &str, password: &str) -> Request<'static> {
    Request::post("/auth/login", json!({"username": username, "password": password}))
}

/// The password of number 0 is that of the admin.
pub(super) fn password(number: u64) -> String {
    format!("{ADMIN_PASSWORD} {number}")
}

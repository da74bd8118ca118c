use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus},
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use ureq::Agent;

use crate::{Role, SharedStores, free_port, server_binary};

/// The password of the account `admin`.
pub const ADMIN_PASSWORD: &str = "correct horse battery 9";

/// The log level of servers; thousands of requests are not logged one by one.
const LOG: &str = "info,actix_server=warn,lkr_server::http=warn";

/// The longest a server may take to become ready, a task to end, and a process to exit.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// The variable that says on which stores servers work: those in their data folders, or `shared` ones, which are Redis, Qdrant
/// and an object store for each server.
const STORES: &str = "LKR_E2E_STORES";

/// A server process in a temporary folder, which is removed on drop.
#[derive(Debug)]
pub struct Server {
    /// The stores that this server alone works on, unless they are in its data folder.
    stores: Option<SharedStores>,
    folder: TempDir,
    port: u16,
    program: PathBuf,
    /// The data folder in `folder`, if the server is given one.
    data: Option<&'static str>,
    environment: Vec<(String, String)>,
    process: Mutex<Option<Child>>,
    pub(crate) agent: Agent,
    pub(crate) admin: OnceLock<String>,
}

impl Server {
    /// A running server without an embedding model.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(&[("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)])
    }

    /// A running server with these variables in its environment and no other `LKR_` variables.
    #[must_use]
    pub fn start_with(environment: &[(&str, &str)]) -> Self {
        let is_shared = std::env::var(STORES).is_ok_and(|stores| stores == "shared");
        match is_shared && !environment.iter().any(|(key, _)| *key == "LKR_STATE") {
            true => Self::start_on_own_stores(environment),
            false => Self::start_in(Some("data"), environment),
        }
    }

    fn start_on_own_stores(environment: &[(&str, &str)]) -> Self {
        let stores = SharedStores::start().expect("redis-server and an S3 server");
        let mut server = stores.stopped_server(Role::All);
        server.environment.retain(|(key, _)| key != "LKR_ADMIN_PASSWORD");
        environment.iter().for_each(|(key, value)| server.set(key, value));
        server.stores = Some(stores);
        server.restart();
        server
    }

    /// A stopped server whose data folder is filled by `fill`.
    #[must_use]
    pub fn with_data_dir(environment: &[(&str, &str)], fill: impl FnOnce(&Path)) -> Self {
        let server = Self::stopped(Some("data"), environment);
        fs::create_dir(server.data_dir()).expect("a data folder");
        fill(&server.data_dir());
        server
    }

    fn start_in(data: Option<&'static str>, environment: &[(&str, &str)]) -> Self {
        let server = Self::stopped(data, environment);
        server.restart();
        server
    }

    pub(crate) fn stopped(data: Option<&'static str>, environment: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // Every request opens a connection, because those of a killed server are useless.
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_idle_connections(0)
            .timeout_global(Some(TIMEOUT))
            .build();
        let mut server = Self {
            stores: None,
            folder,
            port: free_port(),
            program: server_binary().to_owned(),
            data,
            environment: Vec::new(),
            process: Mutex::new(None),
            agent: config.new_agent(),
            admin: OnceLock::new(),
        };
        for (key, value) in environment {
            server.set(key, value);
        }
        server
    }

    /// A running server in an empty folder, without configuration except its address.
    #[must_use]
    pub fn start_without_config() -> Self {
        Self::start_in(None, &[])
    }

    /// Its base URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets a variable of the environment for the next start.
    pub fn set(&mut self, key: &str, value: &str) {
        self.environment.retain(|(known, _)| known != key);
        self.environment.push((key.to_owned(), value.to_owned()));
    }

    /// Sets the program for the next start, such as an earlier `lkr-server`.
    pub fn run_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// Starts the process and waits until it is ready; a running one is killed first.
    ///
    /// # Panics
    /// If it does not become ready.
    pub fn restart(&self) {
        assert!(self.restart_with(&[]), "the server exited before it was ready:\n{}", self.log());
    }

    /// Like [`restart`](Self::restart), with a fail point `<point>:<n>` at which the server exits when it reaches it for
    /// the n-th time. Returns whether the server became ready before that.
    ///
    /// # Panics
    /// If it neither becomes ready nor ends.
    pub fn restart_with_fail_point(&self, point: &str) -> bool {
        self.restart_with(&[("FAIL_POINT", point)])
    }

    fn restart_with(&self, environment: &[(&str, &str)]) -> bool {
        self.launch_with(environment);
        self.becomes_ready()
    }

    /// Starts the process and does not wait until it is ready; a running one is killed first.
    pub fn launch(&self) {
        self.launch_with(&[]);
    }

    fn launch_with(&self, environment: &[(&str, &str)]) {
        self.kill();
        let log = File::options().create(true).append(true).open(self.log_file()).expect("a log");
        let child = self
            .command()
            .envs(environment.iter().copied())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        *self.process() = Some(child.expect("the server starts"));
    }

    /// Waits until the process is ready; `false` if it ended before.
    ///
    /// # Panics
    /// If it neither becomes ready nor ends.
    pub fn becomes_ready(&self) -> bool {
        let deadline = Instant::now() + TIMEOUT;
        while !self.try_call("GET", "/readyz", None, None).is_ok_and(|response| response.status == 200) {
            if self.has_ended() {
                return false;
            }
            assert!(Instant::now() < deadline, "not ready:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
        true
    }

    /// Whether the process was started and has ended.
    ///
    /// # Panics
    /// If the system does not report its status.
    pub fn has_ended(&self) -> bool {
        self.process().as_mut().is_some_and(|process| process.try_wait().expect("a status").is_some())
    }

    /// Whether the process was started and nobody has waited for its end.
    pub(crate) fn is_running(&self) -> bool {
        self.process().is_some()
    }

    /// The command that starts a server with this folder and port.
    #[must_use]
    pub fn command(&self) -> Command {
        self.command_of(&self.program)
    }

    /// Whether it works on stores outside of its data folder that no other server has.
    #[must_use]
    pub const fn has_own_stores(&self) -> bool {
        self.stores.is_some()
    }

    /// The command that starts a program with this folder and the configuration of this server.
    #[must_use]
    pub fn command_of(&self, program: &Path) -> Command {
        let mut command = bare_command(program, self.folder.path());
        command
            .env("RUST_LOG", LOG)
            .env("LKR_LISTEN", format!("127.0.0.1:{}", self.port))
            .envs(self.data.map(|_| ("LKR_DATA_DIR", self.data_dir())))
            .envs(self.environment.iter().map(|(key, value)| (key, value)));
        command
    }

    /// The anonymous resident memory of the process in bytes; mapped files do not count.
    ///
    /// # Panics
    /// If the server is not running.
    #[must_use]
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("a status");
        let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("its memory");
        let kilobytes: Option<u64> = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
        kilobytes.expect("a number") * 1024
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&self) {
        let process = self.process().take();
        if let Some(mut process) = process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Sends SIGTERM to the process.
    ///
    /// # Panics
    /// If the server is not running.
    pub fn terminate(&self) {
        let status = Command::new("sh").args(["-c", &format!("kill -TERM {}", self.pid())]).status();
        assert!(status.expect("sh").success());
    }

    /// Waits until the process has exited.
    ///
    /// # Panics
    /// If it is still running after two minutes.
    pub fn wait(&self) -> ExitStatus {
        let mut process = self.process().take().expect("a running server");
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = process.try_wait().expect("a status") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server did not exit:\n{}", self.log());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops the process with SIGTERM and checks that it exits with success.
    pub fn stop(&self) {
        self.terminate();
        let status = self.wait();
        assert!(status.success(), "{status}:\n{}", self.log());
    }

    /// Its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The id of the running process.
    ///
    /// # Panics
    /// If the server is not running.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process().as_ref().expect("a running server").id()
    }

    /// Its working folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its data folder.
    #[must_use]
    pub fn data_dir(&self) -> PathBuf {
        self.folder.path().join(self.data.unwrap_or("lkr-data"))
    }

    /// The log of all its processes so far.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.log_file()).unwrap_or_default()).into_owned()
    }

    fn process(&self) -> MutexGuard<'_, Option<Child>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines.iter().skip(lines.len().saturating_sub(40));
            tail.for_each(|line| eprintln!("server: {line}"));
        }
    }
}

/// A program's command in a folder, without `LKR_` variables.
pub(crate) fn bare_command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("LKR_") {
            command.env_remove(key);
        }
    }
    command.current_dir(folder).stdin(std::process::Stdio::null());
    command
}

//! A Redis server of a test.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure fails the test that starts the server")]

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{free_port, send_signal, skip};

const PROGRAM: &str = "redis-server";
const CONFIG: &str = "redis.conf";

/// How long a server may take to start.
const START: Duration = Duration::from_secs(20);

/// The settings with which a server keeps every write that it acknowledged.
const DURABLE: [&str; 6] =
    ["--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"];

/// A Redis server on a free port of the loopback interface, with a folder of its own. Dropping it ends it.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    folder: TempDir,
    arguments: Vec<String>,
    environment: Vec<(String, OsString)>,
    process: Child,
}

impl RedisServer {
    /// Starts a server that keeps every write; `None` with a visible skip if redis-server is not installed.
    ///
    /// # Panics
    /// If the server does not start; or if it is not installed and the environment variable `CI` is set.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with more settings, such as `--maxmemory`, `1mb`. They take precedence.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[must_use]
    pub fn start_with(settings: &[&str]) -> Option<Self> {
        Self::start_configured("", &[&DURABLE[..], &["--save", ""], settings].concat(), Vec::new())
    }

    /// Starts a server with more variables in its environment, which it also has after a restart.
    ///
    /// # Panics
    /// As [`start`](Self::start) does.
    #[must_use]
    pub fn start_in(environment: Vec<(String, OsString)>) -> Option<Self> {
        Self::start_configured("", &[&DURABLE[..], &["--save", ""]].concat(), environment)
    }

    /// Starts a server with the lines of a configuration file, which sentinels need because they write to it.
    pub(crate) fn start_configured(
        lines: &str,
        arguments: &[&str],
        environment: Vec<(String, OsString)>,
    ) -> Option<Self> {
        if Command::new(PROGRAM).arg("--version").output().is_err() {
            skip(&format!("{PROGRAM} is not installed"));
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        // A port that was free may be taken by another test before the server binds it.
        for _ in 0..5 {
            let port = free_port();
            fs::write(folder.path().join(CONFIG), lines).unwrap();
            let mut process = launch(port, &folder, &arguments, &environment);
            if wait_until_ready(port, &mut process) {
                return Some(Self { port, folder, arguments, environment, process });
            }
        }
        panic!("{PROGRAM} does not start: {}", fs::read_to_string(folder.path().join("log")).unwrap());
    }

    /// The address, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The id of the process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends the process as kill -9 does.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts a killed server again, with the same port and data.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn restart(&mut self) {
        self.process = launch(self.port, &self.folder, &self.arguments, &self.environment);
        assert!(wait_until_ready(self.port, &mut self.process), "{PROGRAM} does not start again");
    }

    /// Kills the server and starts it again without its data.
    ///
    /// # Panics
    /// If the server does not start.
    pub fn restart_empty(&mut self) {
        self.kill();
        fs::remove_dir_all(self.folder.path().join("appendonlydir")).unwrap();
        let _absent = fs::remove_file(self.folder.path().join("dump.rdb"));
        self.restart();
    }

    /// Stops the process as a hanging machine does, until [`cont`](Self::cont).
    pub fn stop(&self) {
        send_signal(&self.process, "STOP");
    }

    /// Continues a stopped process.
    pub fn cont(&self) {
        send_signal(&self.process, "CONT");
    }

    /// Sends a command and returns the first bytes of the answer, in the protocol of Redis.
    ///
    /// # Errors
    /// If the server is unreachable, or does not answer within two seconds.
    pub fn command(&self, command: &[&str]) -> io::Result<String> {
        command_to(self.port, command)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let _already_ended = self.process.kill();
        let _already_ended = self.process.wait();
    }
}

fn launch(port: u16, folder: &TempDir, arguments: &[String], environment: &[(String, OsString)]) -> Child {
    let log = File::create(folder.path().join("log")).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg(CONFIG).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]).args(arguments);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    command.current_dir(folder.path()).stdin(Stdio::null()).stderr(Stdio::null()).stdout(log);
    command.spawn().unwrap()
}

/// Waits until the server answers; `false` if it ends before.
fn wait_until_ready(port: u16, process: &mut Child) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < START {
        if process.try_wait().unwrap().is_some() {
            return false;
        }
        if command_to(port, &["PING"]).is_ok_and(|answer| answer.starts_with("+PONG")) {
            return true;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("the server does not answer within {START:?}");
}

pub(crate) fn command_to(port: u16, command: &[&str]) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut request = format!("*{}\r\n", command.len());
    for part in command {
        request.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    stream.write_all(request.as_bytes())?;
    let mut answer = vec![0; 65_536];
    let len = stream.read(&mut answer)?;
    answer.truncate(len);
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

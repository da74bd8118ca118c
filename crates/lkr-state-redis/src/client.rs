//! Requests: which connection they take, how long they may take, and when they are sent again.

use std::{
    fmt,
    sync::{OnceLock, atomic::AtomicU64},
    time::Duration,
};

use deadpool::managed::{Object, Pool};
use deadpool_redis::redis::{Cmd, RedisResult, Value, cmd};
use lkr_state::{Error, ErrorKind, Result};
use tokio::time::{Instant, sleep, timeout_at};

use crate::{
    RedisConfig,
    clock::{ServerClock, after, whole_millis},
    error::Failure,
    keys::Keys,
    link::{Link, Links},
    script::{self, Script},
};

/// The pause before the second attempt; it doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// The number of bytes of a request for which an attempt gets another `command_timeout`.
const BYTES_OF_A_TIMEOUT: usize = 8 << 20;

/// A server and the connections to it.
pub(crate) struct RedisClient {
    pub(crate) config: RedisConfig,
    pub(crate) keys: Keys,
    pub(crate) clock: ServerClock,
    /// The largest version and token that this process has seen.
    pub(crate) largest_seen: AtomicU64,
    pool: Pool<Links>,
    /// The installation that was opened.
    installation: OnceLock<String>,
}

/// A script with its keys and arguments.
pub(crate) struct Call<'a> {
    pub(crate) script: &'static Script,
    pub(crate) keys: &'a [String],
    pub(crate) arguments: &'a [&'a [u8]],
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) value: Value,
    /// Whether an earlier attempt may have been applied too.
    pub(crate) follows_unknown: bool,
}

impl RedisClient {
    pub(crate) fn new(config: RedisConfig) -> Result<Self> {
        let invalid = |reason: String| Error::new(ErrorKind::Invalid, "open", reason);
        if config.prefix.is_empty() || config.prefix.contains(['{', '}']) {
            return Err(invalid("the prefix of keys in Redis is empty or contains a brace".to_owned()));
        }
        let links = Links::new(&config).map_err(invalid)?;
        let pool = Pool::builder(links)
            .max_size(config.pool_size.max(1))
            .wait_timeout(Some(config.command_timeout))
            .create_timeout(Some(config.connect_timeout))
            .runtime(deadpool_redis::Runtime::Tokio1)
            .build()
            .map_err(|error| Error::new(ErrorKind::Internal, "open", error))?;
        let keys = Keys::new(&config.prefix);
        Ok(Self {
            config,
            keys,
            clock: ServerClock::new(),
            largest_seen: AtomicU64::new(0),
            pool,
            installation: OnceLock::new(),
        })
    }

    /// Notes which installation was opened.
    pub(crate) fn set_installation(&self, name: String) {
        let _already_set = self.installation.set(name);
    }

    /// The installation that was opened, as an argument of scripts.
    pub(crate) fn installation(&self) -> &[u8] {
        self.installation.get().map_or(b"", |name| name.as_bytes())
    }

    pub(crate) fn links(&self) -> &Links {
        self.pool.manager()
    }

    /// Runs a script that changes nothing; within `command_timeout`.
    pub(crate) async fn read(&self, operation: &'static str, call: Call<'_>) -> Result<Value> {
        let mut attempts = Attempts::new(self.config.command_timeout);
        loop {
            match self.run(&call, attempts.deadline).await {
                Ok(value) => return Ok(value),
                Err(failure) => attempts.failed(operation, failure).await?,
            }
        }
    }

    /// Runs a script that changes something and may be run twice; within [`write_limit`](Self::write_limit).
    pub(crate) async fn write(&self, operation: &'static str, call: Call<'_>) -> Result<Answer> {
        let limit = self.attempt_limit(call.arguments);
        let mut attempts = Attempts::new(self.write_limit(call.arguments));
        loop {
            let deadline = attempts.deadline.min(after(limit));
            match self.run_and_wait(&call, deadline).await {
                Ok(value) => return Ok(Answer { value, follows_unknown: attempts.is_unknown }),
                Err(failure) => attempts.failed(operation, failure).await?,
            }
        }
    }

    /// Whether the server is reachable and has the installation that was opened.
    pub(crate) async fn health(&self) -> Result<()> {
        // Reads no key.
        let arguments = [self.installation()];
        let call = Call { script: &script::GET, keys: &self.keys.get(), arguments: &arguments };
        self.read("health", call).await.map(drop)
    }

    /// How long a write with these arguments is repeated.
    pub(crate) fn write_limit(&self, arguments: &[&[u8]]) -> Duration {
        self.config.write_timeout.max(self.attempt_limit(arguments))
    }

    fn attempt_limit(&self, arguments: &[&[u8]]) -> Duration {
        let size: usize = arguments.iter().map(|argument| argument.len()).sum();
        let extra = u32::try_from(size / BYTES_OF_A_TIMEOUT).unwrap_or(u32::MAX);
        self.config.command_timeout.saturating_mul(extra.saturating_add(1))
    }

    /// Sends a command that changes nothing to the server of the keys.
    pub(crate) async fn command(&self, operation: &'static str, command: &Cmd) -> Result<Value> {
        let mut attempts = Attempts::new(self.config.command_timeout);
        loop {
            match self.command_once(command, attempts.deadline).await {
                Ok(value) => return Ok(value),
                Err(failure) => attempts.failed(operation, failure).await?,
            }
        }
    }

    pub(crate) async fn command_once(&self, command: &Cmd, deadline: Instant) -> Result<Value, Failure> {
        let mut link = self.link(deadline).await?;
        let key = self.keys.any();
        let sent = timeout_at(deadline, link.send_to(&key, command.clone())).await;
        self.checked(link, sent.map_err(|_| "a command"))
    }

    async fn run_and_wait(&self, call: &Call<'_>, deadline: Instant) -> Result<Value, Failure> {
        let wanted = self.config.wait_replicas;
        if wanted == 0 {
            return self.run(call, deadline).await;
        }
        let mut link = self.link(deadline).await?;
        // A little less than the caller waits, so that the server answers how many it were.
        let wait = || {
            let limit = deadline.saturating_duration_since(Instant::now()) * 9 / 10;
            cmd("WAIT").arg(wanted).arg(whole_millis(limit).max(1)).to_owned()
        };
        let key = self.keys.any();
        let sent = timeout_at(deadline, run_and_then(&mut link, &key, call, wait)).await;
        let (value, waited) = match sent {
            Ok(Ok(both)) => both,
            Ok(Err(error)) => return Err(self.failed(link, Failure::from_redis(&error))),
            Err(_) => return Err(self.failed(link, Failure::timeout("a script and WAIT"))),
        };
        match waited {
            Ok(Value::Int(reached)) if reached >= i64::from(wanted) => Ok(value),
            Ok(Value::Int(reached)) => Err(Failure::too_few_replicas(reached, wanted)),
            Ok(_) => Err(Failure::internal("Redis answered WAIT in an unknown form")),
            Err(error) => Err(self.failed(link, Failure::from_wait(&error))),
        }
    }

    async fn run(&self, call: &Call<'_>, deadline: Instant) -> Result<Value, Failure> {
        let mut link = self.link(deadline).await?;
        let sent = timeout_at(deadline, run_on(&mut link, call)).await;
        self.checked(link, sent.map_err(|_| "a script"))
    }

    async fn link(&self, deadline: Instant) -> Result<Object<Links>, Failure> {
        match timeout_at(deadline, self.pool.get()).await {
            Ok(got) => got.map_err(|error| self.judged(Failure::from_pool(error))),
            Err(_) => Err(Failure::unsent("no connection to Redis in time")),
        }
    }

    /// The answer.
    fn checked(&self, link: Object<Links>, sent: Result<RedisResult<Value>, &str>) -> Result<Value, Failure> {
        match sent {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.failed(link, Failure::from_redis(&error))),
            Err(what) => Err(self.failed(link, Failure::timeout(what))),
        }
    }

    /// While a store is opened, a server that does not take the password is a mistake in the configuration; later it is away.
    fn judged(&self, failure: Failure) -> Failure {
        if self.installation.get().is_some() { failure.of_open_store() } else { failure }
    }

    /// Closes a connection that failed, and has those of its age replaced.
    fn failed(&self, link: Object<Links>, failure: Failure) -> Failure {
        let failure = self.judged(failure);
        if failure.breaks_connection {
            self.links().replace(&link);
            drop(Object::take(link));
        }
        failure
    }
}

/// The attempts of a request.
struct Attempts {
    deadline: Instant,
    pause: Duration,
    /// Whether an attempt may have been applied although no answer came.
    is_unknown: bool,
}

impl Attempts {
    fn new(limit: Duration) -> Self {
        Self { deadline: after(limit), pause: FIRST_PAUSE, is_unknown: false }
    }

    /// Waits for the next attempt.
    ///
    /// # Errors
    /// The failure, if there is no further attempt.
    async fn failed(&mut self, operation: &'static str, mut failure: Failure) -> Result<()> {
        self.is_unknown |= failure.is_unknown;
        if failure.is_temporary && Instant::now() + self.pause < self.deadline {
            sleep(self.pause).await;
            self.pause = (2 * self.pause).min(LONGEST_PAUSE);
            return Ok(());
        }
        if self.is_unknown {
            failure.message.push_str("; whether the server applied the request is unknown");
        }
        Err(failure.into_error(operation))
    }
}

/// Runs a script by its hash, or by its text if the server does not know it yet.
async fn run_on(link: &mut Link, call: &Call<'_>) -> RedisResult<Value> {
    match link.send(&call.command("EVALSHA", call.script.hash())).await {
        Err(error) if error.code() == Some("NOSCRIPT") => {
            link.send(&call.command("EVAL", call.script.text)).await
        }
        answer => answer,
    }
}

/// Runs a script as [`run_on`] does, and then another command on the same server. Both are sent again if the server does not know
/// the script yet.
async fn run_and_then(
    link: &mut Link,
    key: &str,
    call: &Call<'_>,
    then: impl Fn() -> Cmd,
) -> RedisResult<(Value, RedisResult<Value>)> {
    match link.send_both(key, &call.command("EVALSHA", call.script.hash()), &then).await {
        Err(error) if error.code() == Some("NOSCRIPT") => {
            link.send_both(key, &call.command("EVAL", call.script.text), &then).await
        }
        answers => answers,
    }
}

impl Call<'_> {
    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = cmd(name);
        command.arg(script).arg(self.keys.len()).arg(self.keys).arg(self.arguments);
        command
    }
}

impl fmt::Debug for RedisClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisClient").field("config", &self.config).finish_non_exhaustive()
    }
}

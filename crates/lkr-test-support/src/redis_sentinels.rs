//! A Redis master with replicas, watched by sentinels.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::RedisServer;

/// The name under which the sentinels know the master.
const MASTER: &str = "lkr-master";
/// How long the set may take to find itself, and to choose another master.
const PATIENCE: Duration = Duration::from_secs(60);

/// A master, two replicas and three sentinels, two of which must agree. Dropping it ends all.
#[derive(Debug)]
pub struct RedisSentinels {
    servers: Vec<RedisServer>,
    sentinels: Vec<RedisServer>,
}

impl RedisSentinels {
    /// Starts the set, in which a master without a replica refuses writes; `None` with a visible skip if Redis is not
    /// installed.
    ///
    /// # Panics
    /// As [`RedisServer::start`] does.
    #[must_use]
    pub fn start() -> Option<Self> {
        let settings = ["--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0"];
        let mut servers = vec![RedisServer::start_with(&settings)?];
        let port = servers.first()?.port().to_string();
        for _ in 0..2 {
            let replica_of = format!("127.0.0.1 {port}");
            let settings = [&settings[..], &["--replicaof", &replica_of]].concat();
            servers.push(RedisServer::start_with(&settings)?);
        }
        let lines = format!(
            "sentinel monitor {MASTER} 127.0.0.1 {port} 2\n\
             sentinel down-after-milliseconds {MASTER} 1000\n\
             sentinel failover-timeout {MASTER} 2000\n"
        );
        let sentinel = |_| RedisServer::start_configured(&lines, &["--sentinel"], Vec::new());
        let sentinels = (0..3).map(sentinel).collect::<Option<_>>()?;
        let set = Self { servers, sentinels };
        set.wait("the sentinels do not find the servers", || set.sentinels.iter().all(knows_all));
        Some(set)
    }

    /// The address, as a URL.
    #[must_use]
    pub fn url(&self) -> String {
        let hosts: Vec<String> =
            self.sentinels.iter().map(|sentinel| format!("127.0.0.1:{}", sentinel.port())).collect();
        format!("redis+sentinel://{}/{MASTER}", hosts.join(","))
    }

    /// The server that is the master according to the first sentinel.
    ///
    /// # Panics
    /// If no sentinel knows it.
    pub fn master(&mut self) -> &mut RedisServer {
        let port = self.sentinels.first().and_then(master_port);
        let master = self.servers.iter_mut().find(|server| Some(server.port()) == port);
        #[expect(clippy::expect_used, reason = "a failure fails the test")]
        master.expect("the sentinels must know a master")
    }

    /// Runs `work` while one replica is away, so its writes reach the master and the other replica. Then these end, the first
    /// comes back and becomes the master, and they come back as its replicas: what `work` wrote is lost.
    ///
    /// # Panics
    /// If the sentinels choose no other master, or it gets no replicas.
    pub fn lose(&mut self, work: impl FnOnce()) {
        let first = self.master().port();
        let late = self.servers.iter().map(RedisServer::port).rfind(|port| *port != first);
        let is_late = |server: &RedisServer| Some(server.port()) == late;
        self.servers.iter_mut().filter(|server| is_late(server)).for_each(RedisServer::kill);
        work();
        self.servers.iter_mut().filter(|server| !is_late(server)).for_each(RedisServer::kill);
        self.servers.iter_mut().filter(|server| is_late(server)).for_each(RedisServer::restart);
        self.wait_for_failover(first);
        self.keep_master();
        self.servers.iter_mut().filter(|server| !is_late(server)).for_each(RedisServer::restart);
        let has_replicas = |server: &RedisServer| {
            server
                .command(&["INFO", "replication"])
                .is_ok_and(|info| info.contains("min_slaves_good_slaves:2"))
        };
        let has_new_replicas = || self.servers.iter().filter(|server| is_late(server)).any(has_replicas);
        self.wait("the new master has no replicas", has_new_replicas);
    }

    /// Keeps the sentinels from choosing another master because the present one does not answer for a second on a busy machine: the
    /// former master may not have copied its data yet, and would bring back its own.
    fn keep_master(&self) {
        let set = ["SENTINEL", "SET", MASTER, "down-after-milliseconds", "60000"];
        let is_set =
            |sentinel: &RedisServer| sentinel.command(&set).is_ok_and(|answer| answer.starts_with("+OK"));
        self.wait("the sentinels do not keep the master", || self.sentinels.iter().all(is_set));
    }

    /// Has the sentinels make another server the master while the old one works.
    ///
    /// # Panics
    /// If they refuse for long.
    pub fn start_failover(&self) {
        // On a busy machine a replica may not have answered them lately.
        self.wait("the sentinels refuse to make another server the master", || {
            let answer =
                self.sentinels.first().map(|sentinel| sentinel.command(&["SENTINEL", "FAILOVER", MASTER]));
            matches!(answer, Some(Ok(answer)) if answer.starts_with("+OK"))
        });
    }

    /// Waits until the sentinels have made another server than the one on this port the master.
    ///
    /// # Panics
    /// If they do not.
    pub fn wait_for_failover(&self, from: u16) {
        let is_other = |sentinel| master_port(sentinel).is_some_and(|port| port != from);
        self.wait("the sentinels choose no other master", || self.sentinels.iter().all(is_other));
    }

    fn wait(&self, message: &str, is_done: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_done() {
            assert!(begin.elapsed() < PATIENCE, "{message}: {self:?}");
            sleep(Duration::from_millis(50));
        }
    }
}

/// Whether a sentinel knows both replicas and both other sentinels.
fn knows_all(sentinel: &RedisServer) -> bool {
    let state = sentinel.command(&["SENTINEL", "MASTER", MASTER]).unwrap_or_default();
    let lines: Vec<&str> = state.lines().collect();
    let value = |name: &str| {
        lines.windows(3).find(|window| window.first() == Some(&name)).and_then(|window| window.last())
    };
    value("num-slaves") == Some(&"2") && value("num-other-sentinels") == Some(&"2")
}

fn master_port(sentinel: &RedisServer) -> Option<u16> {
    let address = sentinel.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER]).ok()?;
    address.lines().nth(4)?.parse().ok()
}

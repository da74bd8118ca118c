//! A Redis Cluster of three masters.
#![expect(clippy::expect_used, clippy::panic, reason = "a failure fails the test")]

use std::{
    cell::Cell,
    sync::{Arc, Mutex, PoisonError, Weak},
    thread::sleep,
    time::{Duration, Instant},
};

use crate::RedisServer;

/// The slots of each master.
const RANGES: [(u16, u16); 3] = [(0, 5_460), (5_461, 10_922), (10_923, 16_383)];
/// How long the nodes may take to find each other, and to replace a master.
const PATIENCE: Duration = Duration::from_secs(60);
/// A replica that was asked to take the place of its master gives up after five seconds, without a word.
const FAILOVER: Duration = Duration::from_secs(6);
/// The number of keys that move at a time.
const MOVED_KEYS: &str = "100";

/// Three masters with a third of the slots each, and their replicas. Dropping it ends all.
#[derive(Debug)]
pub struct RedisCluster {
    /// The masters, the replicas of the one with the key of the test, and those of the others.
    nodes: Vec<RedisServer>,
    /// The number of replicas of the one with the key.
    replicas: usize,
}

impl RedisCluster {
    /// Starts three masters without replicas; `None` with a visible skip if Redis is not installed.
    ///
    /// # Panics
    /// As [`RedisServer::start`] does.
    #[must_use]
    pub fn start() -> Option<Self> {
        Self::start_masters(&[])
    }

    /// Starts three masters, `count` replicas of the one that has `key`, and one of each other. A node that was away for long may
    /// replace its master.
    ///
    /// # Panics
    /// As [`RedisServer::start`] does.
    #[must_use]
    pub fn start_with_replicas(key: &str, count: usize) -> Option<Self> {
        let mut cluster = Self::start_masters(&REPLICATION)?;
        let (owner, first) = (cluster.owner(key), cluster.nodes.len());
        let others: Vec<u16> = cluster.other_masters(key).map(RedisServer::port).collect();
        let masters: Vec<u16> = std::iter::repeat_n(owner, count).chain(others).collect();
        for _ in &masters {
            cluster.nodes.push(start_node(&REPLICATION)?);
        }
        cluster.replicas = count;
        cluster.meet();
        for (replica, master) in cluster.nodes.iter().skip(first).zip(&masters) {
            order(replica, &["CLUSTER", "REPLICATE", &id(cluster.node(*master))]);
        }
        cluster.wait("the replicas are not connected", |cluster| {
            masters.iter().all(|master| {
                cluster.replicas_of(*master) == masters.iter().filter(|other| *other == master).count()
            })
        });
        // Until then, a replica that is killed starts again without what it received.
        cluster.wait("the replicas do not write their files", |cluster| {
            cluster.nodes.iter().skip(first).all(has_written_its_file)
        });
        Some(cluster)
    }

    /// A cluster of three masters that all callers use who ask for it before the last one has dropped it. Each caller needs
    /// keys of its own.
    ///
    /// # Panics
    /// As [`RedisServer::start`] does.
    #[must_use]
    pub fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<RedisCluster>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cluster) = shared.upgrade() {
            return Some(cluster);
        }
        let cluster = Arc::new(Self::start()?);
        *shared = Arc::downgrade(&cluster);
        Some(cluster)
    }

    fn start_masters(settings: &[&str]) -> Option<Self> {
        let nodes = RANGES.iter().map(|_| start_node(settings)).collect::<Option<Vec<_>>>()?;
        for (n, (node, (low, high))) in nodes.iter().zip(RANGES).enumerate() {
            order(node, &["CLUSTER", "ADDSLOTSRANGE", &low.to_string(), &high.to_string()]);
            order(node, &["CLUSTER", "SET-CONFIG-EPOCH", &(n + 1).to_string()]);
        }
        let cluster = Self { nodes, replicas: 0 };
        cluster.meet();
        Some(cluster)
    }

    /// Introduces all nodes to each other.
    fn meet(&self) {
        let known = format!("cluster_known_nodes:{}\r", self.nodes.len());
        let first = self.nodes.first().expect("the cluster has nodes");
        for node in self.nodes.iter().skip(1) {
            order(first, &["CLUSTER", "MEET", "127.0.0.1", &node.port().to_string()]);
        }
        self.wait("the nodes do not find each other", |cluster| {
            cluster.nodes.iter().all(|node| {
                let info = node.command(&["CLUSTER", "INFO"]).unwrap_or_default();
                info.contains("cluster_state:ok") && info.contains(&known)
            })
        });
    }

    /// The address, as a URL that names a master that has not `key`.
    ///
    /// # Panics
    /// If no node answers.
    #[must_use]
    pub fn url_without(&self, key: &str) -> String {
        format!("redis+cluster://127.0.0.1:{}", self.other_master(key))
    }

    /// The master that has `key`.
    ///
    /// # Panics
    /// If no node answers.
    pub fn master(&mut self, key: &str) -> &mut RedisServer {
        let owner = self.owner(key);
        self.master_on(owner)
    }

    fn master_on(&mut self, port: u16) -> &mut RedisServer {
        self.nodes.iter_mut().find(|node| node.port() == port).expect("the port must be that of a node")
    }

    /// The masters that have not `key`.
    pub fn other_masters(&self, key: &str) -> impl Iterator<Item = &RedisServer> {
        let owner = self.owner(key);
        self.nodes.iter().take(RANGES.len()).filter(move |node| node.port() != owner)
    }

    /// The nodes that were started as replicas of the master with the key.
    pub fn replicas_mut(&mut self) -> impl Iterator<Item = &mut RedisServer> {
        self.nodes.iter_mut().skip(RANGES.len()).take(self.replicas)
    }

    /// Moves the slot of `key` to another master, with its keys, while clients use them.
    ///
    /// # Panics
    /// If a node refuses.
    pub fn move_slot(&self, key: &str) {
        let (from, to) = (self.owner(key), self.other_master(key));
        let (from, to) = (self.node(from), self.node(to));
        let slot = slot(from, key).expect("the master must answer").to_string();
        let port = to.port().to_string();
        let (source, target) = (id(from), id(to));
        order(to, &["CLUSTER", "SETSLOT", &slot, "IMPORTING", &source]);
        order(from, &["CLUSTER", "SETSLOT", &slot, "MIGRATING", &target]);
        loop {
            let keys = list(&ask(from, &["CLUSTER", "GETKEYSINSLOT", &slot, MOVED_KEYS]));
            if keys.is_empty() {
                break;
            }
            let command = ["MIGRATE", "127.0.0.1", &port, "", "0", "2000", "KEYS"];
            let keys = keys.iter().map(String::as_str);
            ask(from, &command.into_iter().chain(keys).collect::<Vec<_>>());
        }
        // The new owner first, so that at no time nobody has the slot.
        for node in [to, from].into_iter().chain(self.other_masters(key)) {
            order(node, &["CLUSTER", "SETSLOT", &slot, "NODE", &target]);
        }
        self.wait_for_owner(key, from.port());
    }

    /// Has a replica take the place of the master that has `key` while both work. Returns the port of that master.
    ///
    /// # Panics
    /// If none does for long.
    pub fn fail_over(&self, key: &str) -> u16 {
        let old = self.owner(key);
        let asked = Cell::new(None::<Instant>);
        self.wait("no replica takes the place of its master", |cluster| {
            if cluster.has_other_owner(key, old) {
                return true;
            }
            if asked.get().is_none_or(|asked| asked.elapsed() > FAILOVER) {
                let replica = cluster.replica_of_owner(key);
                let answer = replica.and_then(|replica| replica.command(&["CLUSTER", "FAILOVER"]).ok());
                if answer.is_some_and(|answer| answer.starts_with("+OK")) {
                    asked.set(Some(Instant::now()));
                }
            }
            false
        });
        old
    }

    /// A replica of the master that has `key`, as that master says.
    fn replica_of_owner(&self, key: &str) -> Option<&RedisServer> {
        let owner = self.nodes.iter().find_map(|node| owner_by(node, key))?;
        let table = self.node(owner).command(&["CLUSTER", "NODES"]).ok()?;
        let master = list(&self.node(owner).command(&["CLUSTER", "MYID"]).ok()?).pop()?;
        let is_replica = |line: &&str| line.contains("slave") && line.contains(&master);
        let port = table.lines().find(is_replica).and_then(port)?;
        self.nodes.iter().find(|node| node.port() == port)
    }

    /// Has a replica that was killed take the place of the master that has `key`: what only the master had is lost. The master
    /// hangs meanwhile, and then ends.
    ///
    /// # Panics
    /// If the replicas do not start again.
    pub fn lose_master(&mut self, key: &str) {
        let old = self.owner(key);
        self.node(old).stop();
        self.replicas_mut().for_each(RedisServer::restart);
        let next = self.nodes.get(RANGES.len()).expect("the master must have replicas").port();
        order(self.node(next), &["CLUSTER", "FAILOVER", "TAKEOVER"]);
        self.wait("the new master has no replicas", |cluster| {
            cluster.replicas_of(next) == cluster.replicas - 1
        });
        self.master_on(old).kill();
        self.wait_for_owner(key, old);
    }

    /// Waits until all other nodes that answer say that another master than the one on the port `from` has `key`.
    ///
    /// # Panics
    /// If they do not.
    pub fn wait_for_owner(&self, key: &str, from: u16) {
        self.wait("the slot gets no other master", |cluster| cluster.has_other_owner(key, from));
    }

    /// Whether all nodes that answer, but for the one on the port `from`, say that another one has `key`.
    fn has_other_owner(&self, key: &str, from: u16) -> bool {
        let answering = self.nodes.iter().filter(|node| node.port() != from);
        let owners: Vec<u16> = answering.filter_map(|node| owner_by(node, key)).collect();
        !owners.is_empty() && owners.iter().all(|owner| *owner != from)
    }

    fn node(&self, port: u16) -> &RedisServer {
        self.nodes.iter().find(|node| node.port() == port).expect("the port must be that of a node")
    }

    /// The number of replicas that have all data of the node on this port.
    fn replicas_of(&self, port: u16) -> usize {
        let info = self.node(port).command(&["INFO", "replication"]).unwrap_or_default();
        info.matches("state=online").count()
    }

    /// The port of the master that has `key`, according to the first node that answers.
    fn owner(&self, key: &str) -> u16 {
        let found = self.nodes.iter().find_map(|node| owner_by(node, key));
        found.expect("a master must have the slot")
    }

    fn other_master(&self, key: &str) -> u16 {
        self.other_masters(key).map(RedisServer::port).next().expect("the cluster has three masters")
    }

    fn wait(&self, message: &str, is_done: impl Fn(&Self) -> bool) {
        let begin = Instant::now();
        while !is_done(self) {
            assert!(begin.elapsed() < PATIENCE, "{message}: {self:?}");
            sleep(Duration::from_millis(20));
        }
    }
}

/// The settings of nodes with replicas. A master that a busy machine keeps waiting for a second is not replaced.
const REPLICATION: [&str; 6] = [
    "--cluster-replica-validity-factor",
    "0",
    "--repl-diskless-sync-delay",
    "0",
    "--cluster-node-timeout",
    "3000",
];

fn start_node(settings: &[&str]) -> Option<RedisServer> {
    let cluster = [
        "--cluster-enabled",
        "yes",
        "--cluster-node-timeout",
        "1000",
        // The keys of one slot do not need the others.
        "--cluster-require-full-coverage",
        "no",
    ];
    RedisServer::start_with(&[&cluster[..], settings].concat())
}

/// Sends a command that must be done.
fn order(node: &RedisServer, command: &[&str]) {
    let answer = ask(node, command);
    assert!(answer.starts_with("+OK"), "{command:?}: {answer}");
}

/// Sends a command that must not fail.
fn ask(node: &RedisServer, command: &[&str]) -> String {
    match node.command(command) {
        Ok(answer) if !answer.starts_with('-') => answer,
        answer => panic!("{command:?}: {answer:?}"),
    }
}

/// Whether a replica has written to its disk what it received when it was connected.
fn has_written_its_file(replica: &RedisServer) -> bool {
    let info = replica.command(&["INFO", "persistence"]).unwrap_or_default();
    ["aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"].iter().all(|line| info.contains(line))
}

/// The id of a node in its cluster.
fn id(node: &RedisServer) -> String {
    list(&ask(node, &["CLUSTER", "MYID"])).pop().expect("a node has an id")
}

/// The slot of a key; `None` if the node does not answer.
fn slot(node: &RedisServer, key: &str) -> Option<u16> {
    let answer = node.command(&["CLUSTER", "KEYSLOT", key]).ok()?;
    answer.trim_start_matches(':').trim_end().parse().ok()
}

/// The port of the master that has `key` according to this node; `None` if it does not answer.
fn owner_by(node: &RedisServer, key: &str) -> Option<u16> {
    let table = node.command(&["CLUSTER", "NODES"]).ok()?;
    owner_in(&table, slot(node, key)?)
}

/// The texts in an answer: every line that is no length.
fn list(answer: &str) -> Vec<String> {
    answer.lines().filter(|line| !line.starts_with(['*', '$'])).map(str::to_owned).collect()
}

/// The port of the master that has the slot, in the answer of CLUSTER NODES: id, address, flags, master, two times, epoch,
/// state, slots.
fn owner_in(table: &str, slot: u16) -> Option<u16> {
    let has_slot = |range: &str| {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        low.parse().is_ok_and(|low: u16| low <= slot) && high.parse().is_ok_and(|high: u16| slot <= high)
    };
    let is_owner = |line: &&str| {
        let mut fields = line.split_whitespace();
        fields.nth(2).is_some_and(|flags| flags.contains("master")) && fields.skip(5).any(has_slot)
    };
    table.lines().find(is_owner).and_then(port)
}

/// The port in a line of CLUSTER NODES: `host:port@bus-port`.
fn port(line: &str) -> Option<u16> {
    let address = line.split_whitespace().nth(1)?;
    address.split('@').next()?.rsplit(':').next()?.parse().ok()
}

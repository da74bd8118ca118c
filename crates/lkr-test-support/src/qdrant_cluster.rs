//! The nodes of a Qdrant cluster, as child processes.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::{
    env, fs,
    fs::File,
    io::{self, Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{free_port, note_skip, send_signal};

/// The variable with the path of Qdrant's executable.
const PROGRAM: &str = "LKR_TEST_QDRANT_PROGRAM";

/// The longest time for a node to be ready.
const START: Duration = Duration::from_secs(120);

/// A cluster of Qdrant nodes on 127.0.0.1, each with a folder of its own. Dropping it ends them.
#[derive(Debug)]
pub struct QdrantCluster {
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    command: Command,
    folder: TempDir,
    ports: Ports,
    process: Child,
}

#[derive(Debug, Clone, Copy)]
struct Ports {
    http: u16,
    grpc: u16,
    /// Where the other nodes reach it.
    peers: u16,
}

impl QdrantCluster {
    /// Starts a cluster; `None` if the variable `LKR_TEST_QDRANT_PROGRAM` does not name the executable, which is printed.
    ///
    /// # Panics
    /// If a node does not start.
    #[must_use]
    pub fn start(nodes: usize) -> Option<Self> {
        let Some(program) = env::var_os(PROGRAM).filter(|program| !program.is_empty()) else {
            note_skip(&format!("{PROGRAM} does not name Qdrant's executable"));
            return None;
        };
        let program = PathBuf::from(program);
        let mut cluster = Self { nodes: Vec::new() };
        for _ in 0..nodes {
            let first = cluster.nodes.first().map(|first| first.ports);
            cluster.nodes.push(Node::start(&program, first));
        }
        Some(cluster)
    }

    /// The address of a node's gRPC interface.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn url(&self, node: usize) -> String {
        address(self.nodes.get(node).expect("a node").ports.grpc)
    }

    /// Ends a node as kill -9 does.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn kill(&mut self, node: usize) {
        self.node(node).kill();
    }

    /// Starts a killed node again with its data, and waits until it is ready.
    ///
    /// # Panics
    /// If there is no such node, or it does not start.
    pub fn restart(&mut self, node: usize) {
        let node = self.node(node);
        node.process = launch(&mut node.command, &node.folder);
        node.wait_until_ready();
    }

    /// Stops a node as by SIGSTOP: connections are made, and nothing is answered.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn pause(&self, node: usize) {
        send_signal(&self.nodes.get(node).expect("a node").process, "STOP");
    }

    /// Lets a paused node go on.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn resume(&self, node: usize) {
        send_signal(&self.nodes.get(node).expect("a node").process, "CONT");
    }

    fn node(&mut self, node: usize) -> &mut Node {
        self.nodes.get_mut(node).expect("a node")
    }
}

impl Node {
    /// Starts a node that joins the one with the ports `first`, or begins a cluster.
    fn start(program: &PathBuf, first: Option<Ports>) -> Self {
        let (folder, ports) = (tempfile::tempdir().expect("a folder"), Ports::free());
        let mut command = Command::new(program);
        command.current_dir(folder.path()).stdin(Stdio::null());
        for (key, value) in [
            ("QDRANT__SERVICE__HOST", "127.0.0.1"),
            ("QDRANT__SERVICE__HTTP_PORT", &ports.http.to_string()),
            ("QDRANT__SERVICE__GRPC_PORT", &ports.grpc.to_string()),
            ("QDRANT__CLUSTER__ENABLED", "true"),
            ("QDRANT__CLUSTER__P2P__PORT", &ports.peers.to_string()),
            ("QDRANT__STORAGE__WAL__WAL_CAPACITY_MB", "2"),
            ("QDRANT__TELEMETRY_DISABLED", "true"),
        ] {
            command.env(key, value);
        }
        command.args(["--uri", &address(ports.peers)]);
        if let Some(first) = first {
            command.args(["--bootstrap", &address(first.peers)]);
        }
        let process = launch(&mut command, &folder);
        let mut node = Self { command, folder, ports, process };
        node.wait_until_ready();
        node
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        while !self.is_ready().unwrap_or(false) {
            let has_ended = matches!(self.process.try_wait(), Ok(Some(_)));
            if has_ended || start.elapsed() > START {
                let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
                panic!("a node of Qdrant is not ready:\n{log}");
            }
            sleep(Duration::from_millis(50));
        }
    }

    fn is_ready(&self) -> io::Result<bool> {
        let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.http))?;
        connection.set_read_timeout(Some(Duration::from_secs(2)))?;
        connection.write_all(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        connection.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    }

    fn kill(&mut self) {
        let _already_ended = self.process.kill();
        let _already_ended = self.process.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(command: &mut Command, folder: &TempDir) -> Child {
    let log = File::options().create(true).append(true).open(folder.path().join("log")).expect("a log");
    command.stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("Qdrant cannot be started")
}

fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

impl Ports {
    fn free() -> Self {
        Self { http: free_port(), grpc: free_port(), peers: free_port() }
    }
}

#![doc = include_str!("../README.md")]

mod binary;
mod ports;
mod qdrant_cluster;
mod redis;
mod redis_cluster;
mod redis_sentinels;

pub use binary::{cli_binary, server_binary, workspace};
pub use ports::free_port;
pub use qdrant_cluster::QdrantCluster;
pub use redis::RedisServer;
pub use redis_cluster::RedisCluster;
pub use redis_sentinels::RedisSentinels;

use std::{
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command},
};

mod s3_server;

pub use s3_server::S3Server;

/// The folder of real data, which lies beside the project's own folder.
const REAL_DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");

/// The file or folder `name` of the real data, such as `data/files/html`; `None` if it is absent, which is printed.
///
/// # Panics
/// If it is absent and the environment variable `CI` is set.
#[must_use]
pub fn real_data(name: &str) -> Option<PathBuf> {
    let path = Path::new(REAL_DATA).join(name);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("{} is absent", path.display()));
    None
}

/// Sends a signal such as `STOP` to a process.
pub(crate) fn send_signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([format!("-{name}"), process.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "SIG{name} was not sent");
}

/// Prints that the calling test is skipped, and why.
///
/// # Panics
/// If the environment variable `CI` is set.
#[expect(clippy::panic, reason = "a test that cannot run in CI fails")]
pub fn skip(reason: &str) {
    if env::var_os("CI").is_some() {
        panic!("this test cannot run: {reason}");
    }
    note_skip(reason);
}

/// [`skip`] for what a CI machine need not have either.
pub fn note_skip(reason: &str) {
    let current = std::thread::current();
    let test = current.name().unwrap_or("a test");
    // Not `eprintln!`, whose output the test harness captures.
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {reason}");
}

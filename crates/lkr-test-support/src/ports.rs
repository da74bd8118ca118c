//! Ports for the servers of tests.
#![expect(clippy::expect_used, reason = "a test fails by a panic")]

use std::{
    net::{Ipv4Addr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering},
};

/// The first port that tests give to servers.
const FIRST: u16 = 10_000;
/// The number of ports that tests give to servers. Nodes of a cluster of Redis also use the port that is larger by 10,000.
const COUNT: u16 = 12_000;
/// How far apart the first ports of two processes with consecutive numbers are: far, and prime to the number of ports.
const STRIDE: u32 = 7_919;

/// A free port of the loopback interface, another one in each call.
///
/// It is below those that systems give to connections that leave them (from 32,768 on under Linux). So a server that is stopped
/// finds its port free when it starts again.
///
/// # Panics
/// If all ports are in use.
#[must_use]
pub fn free_port() -> u16 {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    let own = process::id().wrapping_mul(STRIDE) % u32::from(COUNT);
    let next = || {
        let call = u32::from(CALLS.fetch_add(1, Ordering::Relaxed));
        FIRST + u16::try_from((own + call) % u32::from(COUNT)).unwrap_or_default()
    };
    let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    (0..COUNT).map(|_| next()).find(is_free).expect("no port is free")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_and_are_free() {
        let ports: Vec<u16> = (0..50).map(|_| free_port()).collect();
        let held: Vec<_> = ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port))).collect();
        assert!(held.iter().all(Result::is_ok), "{held:?}");
        assert!(ports.iter().all(|port| (FIRST..FIRST + COUNT).contains(port)), "{ports:?}");
        assert!(!ports.contains(&free_port()));
    }
}

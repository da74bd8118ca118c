//! The time from the start of a server's process until it is ready.

use std::{
    env,
    ffi::OsString,
    fmt,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use lkr::has_knowledge_base;

use crate::{bench::connection::Connection, exit::not_found, stats::millis};

/// The pause between two requests for the readiness.
const PAUSE: Duration = Duration::from_millis(1);

/// The longest time until the server is ready, and until it has ended.
const TIMEOUT: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Start the server on this folder, which no other server uses. A server of this version may change it at the first start.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    /// Start and stop it this many times.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    runs: u64,
    /// Give the server these flags, behind --.
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

/// The times until the server was ready.
#[derive(Debug)]
pub(super) struct StartReport(Vec<Duration>);

/// A server's process, which is killed on drop.
#[derive(Debug)]
struct ServerProcess(Child);

/// Measures on a folder that exists.
pub(super) fn measure(args: &Args) -> Result<StartReport> {
    if !args.data_dir.is_dir() {
        return Err(not_found(format!("{} is no folder", args.data_dir.display())));
    }
    // A server would make a knowledge base there. One on stores elsewhere has its key in the folder.
    if !has_knowledge_base(&args.data_dir)? && !args.data_dir.join("secret.key").exists() {
        return Err(not_found(format!("no knowledge base in {}", args.data_dir.display())));
    }
    (0..args.runs).map(|_| time_until_ready(args)).collect::<Result<_>>().map(StartReport)
}

fn time_until_ready(args: &Args) -> Result<Duration> {
    let address = free_address()?;
    let mut command = Command::new(env::current_exe().context("find the program")?);
    command.arg("serve").arg("--data-dir").arg(&args.data_dir).arg("--listen").arg(address.to_string());
    command.args(&args.flags).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut server = ServerProcess(command.spawn().context("start the server")?);
    while !is_ready(address) {
        if let Some(status) = server.0.try_wait()? {
            bail!(
                "the server ended before it was ready ({status}); 'lkr serve' with the same flags says why"
            );
        }
        ensure!(started.elapsed() < TIMEOUT, "the server was not ready after {} s", TIMEOUT.as_secs());
        thread::sleep(PAUSE);
    }
    let ready = started.elapsed();
    server.stop()?;
    Ok(ready)
}

/// An address of this machine that no one listens on.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    listener.local_addr().context("find a free port")
}

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut connection) = Connection::open(&format!("http://{address}")) else { return false };
    let request = connection.encode("GET", "/readyz", "", "");
    connection.send(&request).is_ok_and(|response| response.status == 200)
}

impl ServerProcess {
    /// Stops the process as an operator does, so that the next start has nothing to recover, and waits until it has ended.
    fn stop(&mut self) -> Result<()> {
        self.terminate()?;
        let asked = Instant::now();
        while self.0.try_wait()?.is_none() {
            ensure!(asked.elapsed() < TIMEOUT, "the server did not stop in {} s", TIMEOUT.as_secs());
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    #[cfg(unix)]
    fn terminate(&self) -> Result<()> {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).context("the server has no id")?;
        kill_process(pid, Signal::TERM).context("stop the server")
    }

    #[cfg(not(unix))]
    fn terminate(&mut self) -> Result<()> {
        self.0.kill().context("stop the server")
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl fmt::Display for StartReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.0.clone();
        times.sort_unstable();
        let at = |place: usize| times.get(place).copied().map(millis).unwrap_or_default();
        let (starts, longest) = (times.len(), times.last().copied().map(millis).unwrap_or_default());
        let median = (at(starts.saturating_sub(1) / 2) + at(starts / 2)) / 2.0;
        writeln!(f, "ready after {median:.0} ms in the median of {starts} starts, {longest:.0} ms at most")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_has_the_median_and_the_longest_time() {
        let report = StartReport([30, 10, 90].map(Duration::from_millis).to_vec());
        assert_eq!(report.to_string(), "ready after 30 ms in the median of 3 starts, 90 ms at most\n");
        let even = StartReport([30, 10, 90, 50].map(Duration::from_millis).to_vec());
        assert_eq!(even.to_string(), "ready after 40 ms in the median of 4 starts, 90 ms at most\n");
    }

    #[test]
    fn address_on_which_no_one_listens_is_not_ready() {
        assert!(!is_ready(free_address().unwrap()));
    }
}

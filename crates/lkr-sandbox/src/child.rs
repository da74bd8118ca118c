//! One worker's process, from its start to its end.

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, Command},
    time::{Instant, sleep, timeout_at},
};

use crate::{
    Error, ErrorKind, Extracted, Limits, Result,
    error::{OPERATION, internal},
    message::{Order, Refusal, Report},
    watch::resident,
};

/// How often a worker's memory is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How much of what a worker says is kept: its end.
const MAX_SAID_BYTES: usize = 256 * 1024;

/// What of the environment a worker gets: where programs and their data lie, and no secret.
const ENVIRONMENT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "TMPDIR"];

/// A worker that waits for its order.
#[derive(Debug)]
pub(crate) struct Waiting {
    process: Process,
    input: ChildStdin,
    said: ChildStderr,
    output: File,
}

/// A process that ends, with all that it started, when this goes.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // A process that was waited for has no id any more, so that no other's is taken for it.
        if let Some(group) = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Waiting {
    pub(crate) fn start(program: &Path, arguments: &[OsString], spool: &Path) -> Result<Self> {
        let output = tempfile::tempfile_in(spool).map_err(internal)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().process_group(0).kill_on_drop(true);
        let kept = ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(kept);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(output.try_clone().map_err(internal)?);
        let mut child = command.spawn().map_err(|error| {
            internal(format!("the worker {} cannot be started: {error}", program.display()))
        })?;
        let (Some(input), Some(said)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(internal("the worker has no pipes"));
        };
        Ok(Self { process: Process(child), input, said, output })
    }

    /// Whether it still waits.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.process.0.try_wait(), Ok(None))
    }

    /// Lets it read a file under the limits of its order.
    pub(crate) async fn read(self, order: &Order, file: File) -> Result<Extracted> {
        let Self { mut process, input, said, output } = self;
        let until = Instant::now() + order.limits.hard();
        let id = process.0.id();
        let work = async {
            let (_, said, status) = tokio::join!(send(input, order, file), last_said(said), process.0.wait());
            Ok::<_, Error>((said.map_err(internal)?, status.map_err(internal)?))
        };
        let (said, status) = tokio::select! {
            ended = timeout_at(until, work) => ended.map_err(|_| too_slow(&order.limits))??,
            () = grows_beyond(id, order.limits.resident) => return Err(too_large(&order.limits)),
        };
        match report(&said) {
            Some(Report::Extracted(summary)) if status.success() => Extracted::of_worker(output, summary),
            Some(Report::Refused(Refusal { kind, message })) => Err(Error::new(kind, OPERATION, message)),
            _ => Err(ended_badly(status, &said, &order.limits)),
        }
    }
}

/// Sends the order and the file. A worker that does not take them ends, and its end tells why.
async fn send(mut input: ChildStdin, order: &Order, file: File) -> io::Result<()> {
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    input.write_all(&line).await?;
    let mut file = tokio::fs::File::from_std(file);
    file.rewind().await?;
    let mut file = file.take(order.length);
    tokio::io::copy(&mut file, &mut input).await?;
    input.shutdown().await
}

/// The end of what a worker says.
async fn last_said(mut said: ChildStderr) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 * 1024];
    loop {
        let length = said.read(&mut buffer).await?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend(buffer.iter().take(length));
        let excess = kept.len().saturating_sub(MAX_SAID_BYTES);
        kept.drain(..excess);
    }
}

/// Waits until a process has more memory in use than it may.
async fn grows_beyond(id: Option<u32>, most: u64) {
    loop {
        sleep(LOOK).await;
        if id.and_then(resident).is_some_and(|bytes| bytes > most) {
            return;
        }
    }
}

/// The report: the last line that is one.
fn report(said: &[u8]) -> Option<Report> {
    said.rsplit(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .take(1)
        .find_map(|line| serde_json::from_slice(line).ok())
}

/// What the end of a worker without a report means.
fn ended_badly(status: ExitStatus, said: &[u8], limits: &Limits) -> Error {
    let said = String::from_utf8_lossy(said);
    let end = said.get(said.floor_char_boundary(said.len().saturating_sub(1_000))..).unwrap_or_default();
    tracing::warn!(%status, said = end, "a parser ended badly");
    let signal = status.signal().and_then(Signal::from_named_raw);
    if signal == Some(Signal::XCPU) || signal == Some(Signal::KILL) {
        return too_slow(limits);
    }
    if signal == Some(Signal::XFSZ) {
        return Error::new(ErrorKind::Limit, OPERATION, "its text takes more room than a file may have");
    }
    if said.contains("memory allocation of") || said.contains("out of memory") {
        return too_large(limits);
    }
    Error::new(ErrorKind::Crash, OPERATION, "the parser failed on it")
}

fn too_slow(limits: &Limits) -> Error {
    let reason = format!("it takes longer than {} s to read", limits.hard().as_secs());
    Error::new(ErrorKind::Limit, OPERATION, reason)
}

fn too_large(limits: &Limits) -> Error {
    let reason = format!("it takes more than {} MiB of memory to read", limits.resident / (1024 * 1024));
    Error::new(ErrorKind::Limit, OPERATION, reason)
}

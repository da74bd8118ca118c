//! A worker process, seen from the parent.

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
    memory::resident_bytes,
    message::{ExtractionRequest, Report, WorkerError},
};

const MIB: u64 = 1024 * 1024;

/// How often a worker's memory usage is read. Chosen, not measured.
const MEMORY_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How much of a worker's standard error is kept, counted from its end.
const MAX_STDERR_BYTES: usize = 256 * 1024;

/// The environment variables that a worker inherits: paths of programs and their data, no secrets.
const ENVIRONMENT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TESSDATA_PREFIX", "TMPDIR"];

/// A worker process that waits for its request.
#[derive(Debug)]
pub(crate) struct IdleWorker {
    process: ProcessGroup,
    input: ChildStdin,
    stderr: ChildStderr,
    output: File,
}

/// Dropping it kills the process and every process that it started.
#[derive(Debug)]
struct ProcessGroup(Child);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // After the process was waited for there is no id any more, so a reused id is never killed.
        if let Some(group) = self.0.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl IdleWorker {
    pub(crate) fn start(program: &Path, arguments: &[OsString], spool: &Path) -> Result<Self> {
        let output = tempfile::tempfile_in(spool).map_err(internal)?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear().process_group(0).kill_on_drop(true);
        let inherited = ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(inherited);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(output.try_clone().map_err(internal)?);
        let mut child = command.spawn().map_err(|error| {
            internal(format!("worker {} could not be started: {error}", program.display()))
        })?;
        let (Some(input), Some(stderr)) = (child.stdin.take(), child.stderr.take()) else {
            return Err(internal("the worker process has no pipes"));
        };
        Ok(Self { process: ProcessGroup(child), input, stderr, output })
    }

    /// Whether the process is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.process.0.try_wait(), Ok(None))
    }

    /// Has the worker extract a file within the limits of the request.
    pub(crate) async fn extract(self, request: &ExtractionRequest, file: File) -> Result<Extracted> {
        let Self { mut process, input, stderr, output } = self;
        let deadline = Instant::now() + request.limits.hard();
        let id = process.0.id();
        let work = async {
            let (_, stderr, status) =
                tokio::join!(send(input, request, file), stderr_tail(stderr), process.0.wait());
            Ok::<_, Error>((stderr.map_err(internal)?, status.map_err(internal)?))
        };
        let (stderr, status) = tokio::select! {
            ended = timeout_at(deadline, work) => ended.map_err(|_| time_limit_error(&request.limits))??,
            () = wait_until_memory_exceeds(id, request.limits.resident) => return Err(memory_limit_error(&request.limits)),
        };
        match parse_report(&stderr) {
            Some(Report::Extracted(summary)) if status.success() => Extracted::from_worker(output, summary),
            Some(Report::Refused(WorkerError { kind, message })) => Err(Error::new(kind, OPERATION, message)),
            _ => Err(crash_error(status, &stderr, &request.limits)),
        }
    }
}

/// Sends the request and the file. The caller ignores errors, because the exit status of the worker explains them.
async fn send(mut input: ChildStdin, request: &ExtractionRequest, file: File) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    input.write_all(&line).await?;
    let mut file = tokio::fs::File::from_std(file);
    file.rewind().await?;
    let mut file = file.take(request.length);
    tokio::io::copy(&mut file, &mut input).await?;
    input.shutdown().await
}

/// Reads standard error to its end and returns the last [`MAX_STDERR_BYTES`].
async fn stderr_tail(mut stderr: ChildStderr) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut buffer = vec![0; 8 * 1024];
    loop {
        let length = stderr.read(&mut buffer).await?;
        if length == 0 {
            return Ok(kept);
        }
        kept.extend(buffer.iter().take(length));
        let excess = kept.len().saturating_sub(MAX_STDERR_BYTES);
        kept.drain(..excess);
    }
}

/// Waits until a process uses more than `limit` bytes of memory.
async fn wait_until_memory_exceeds(id: Option<u32>, limit: u64) {
    loop {
        sleep(MEMORY_POLL_INTERVAL).await;
        if id.and_then(resident_bytes).is_some_and(|bytes| bytes > limit) {
            return;
        }
    }
}

/// Parses the report: the last line that is not empty.
fn parse_report(stderr: &[u8]) -> Option<Report> {
    stderr
        .rsplit(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .take(1)
        .find_map(|line| serde_json::from_slice(line).ok())
}

/// Maps the exit of a worker without a report to an error.
fn crash_error(status: ExitStatus, stderr: &[u8], limits: &Limits) -> Error {
    let stderr = String::from_utf8_lossy(stderr);
    let tail =
        stderr.get(stderr.floor_char_boundary(stderr.len().saturating_sub(1_000))..).unwrap_or_default();
    tracing::warn!(%status, stderr = tail, "parser process failed without a report");
    let signal = status.signal().and_then(Signal::from_named_raw);
    if signal == Some(Signal::XCPU) || signal == Some(Signal::KILL) {
        return time_limit_error(limits);
    }
    if signal == Some(Signal::XFSZ) {
        return Error::new(
            ErrorKind::Limit,
            OPERATION,
            format!("extraction exceeded the output limit of {} MiB", limits.output / MIB),
        );
    }
    if stderr.contains("memory allocation of") || stderr.contains("out of memory") {
        return memory_limit_error(limits);
    }
    Error::new(ErrorKind::Crash, OPERATION, "the parser crashed on the file")
}

fn time_limit_error(limits: &Limits) -> Error {
    let reason = format!("extraction exceeded the time limit of {} s", limits.hard().as_secs());
    Error::new(ErrorKind::Limit, OPERATION, reason)
}

fn memory_limit_error(limits: &Limits) -> Error {
    let reason = format!("extraction exceeded the memory limit of {} MiB", limits.resident / MIB);
    Error::new(ErrorKind::Limit, OPERATION, reason)
}

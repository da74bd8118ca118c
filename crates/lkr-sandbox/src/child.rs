//! A worker process, seen from the parent.

use std::{
    fs::File,
    io::{self, Read, Seek},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{
    io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt},
    process::{Child, ChildStderr, ChildStdin, Command},
    task::spawn_blocking,
    time::{Instant, sleep, timeout_at},
};

use crate::{
    Confinement, Error, ErrorKind, Extracted, Limits, Result,
    error::{OPERATION, internal},
    message::{FileRequest, Report, WorkerCommand, WorkerError, WorkerRequest},
    usage::usage,
};

const MIB: u64 = 1024 * 1024;

/// How often the usage of a worker is read. Chosen, not measured.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

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
    pub(crate) fn start(worker: &WorkerCommand, spool: &Path) -> Result<Self> {
        let output = tempfile::tempfile_in(spool).map_err(internal)?;
        let mut command = Command::new(&worker.program);
        command.args(&worker.arguments).env_clear().process_group(0).kill_on_drop(true);
        let inherited = ENVIRONMENT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        command.envs(inherited);
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        command.stdout(output.try_clone().map_err(internal)?);
        let mut child = command.spawn().map_err(|error| {
            internal(format!("worker {} could not be started: {error}", worker.program.display()))
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
    pub(crate) async fn extract(self, request: FileRequest, file: File) -> Result<Extracted> {
        let (limits, length) = (request.limits, request.length);
        let (report, output) =
            self.run(&WorkerRequest::Extract(request), Some((file, length)), &limits).await?;
        match report {
            Report::Extracted(summary) => Extracted::from_worker(output, summary),
            Report::Refused(WorkerError { kind, message }) => Err(Error::new(kind, OPERATION, message)),
            Report::Viewed(_) | Report::Confined(_) => Err(another_request()),
        }
    }

    /// Has the worker view a file within the limits of the request.
    pub(crate) async fn view(self, request: FileRequest, file: File) -> Result<Vec<u8>> {
        let (limits, length) = (request.limits, request.length);
        let (report, output) = self.run(&WorkerRequest::View(request), Some((file, length)), &limits).await?;
        match report {
            Report::Viewed(bytes) => spawn_blocking(move || read_view(output, bytes, limits.output)).await?,
            Report::Refused(WorkerError { kind, message }) => Err(Error::new(kind, OPERATION, message)),
            Report::Extracted(_) | Report::Confined(_) => Err(another_request()),
        }
    }

    /// Has the worker confine itself, and returns what the system enforces.
    pub(crate) async fn confinement(self) -> Result<Confinement> {
        match self.run(&WorkerRequest::Confine, None, &Limits::default()).await?.0 {
            Report::Confined(confinement) => Ok(confinement),
            _ => Err(another_request()),
        }
    }

    /// Sends a request, and waits for the end of the process and its report.
    async fn run(
        self,
        request: &WorkerRequest,
        file: Option<(File, u64)>,
        limits: &Limits,
    ) -> Result<(Report, File)> {
        let Self { mut process, input, stderr, output } = self;
        let deadline = Instant::now().checked_add(limits.wall());
        let deadline = deadline.ok_or_else(|| internal("the time limit is too long"))?;
        let id = process.0.id();
        let work = async {
            let (_, stderr, status) =
                tokio::join!(send(input, request, file), stderr_tail(stderr), process.0.wait());
            Ok::<_, Error>((stderr.map_err(internal)?, status.map_err(internal)?))
        };
        let (stderr, status) = tokio::select! {
            ended = timeout_at(deadline, work) => ended.map_err(|_| time_limit_error(limits))??,
            error = wait_until_limit_is_exceeded(id, limits) => return Err(error),
        };
        match parse_report(&stderr) {
            // A worker that reports success and then crashes did not finish its output.
            Some(report) if status.success() || matches!(report, Report::Refused(_)) => Ok((report, output)),
            _ => Err(crash_error(status, &stderr, limits)),
        }
    }
}

fn another_request() -> Error {
    internal("the worker answered another request")
}

/// Reads the view that a worker wrote, if it has the reported length.
fn read_view(mut output: File, reported: u64, most: u64) -> Result<Vec<u8>> {
    let length = output.metadata().map_err(internal)?.len();
    if length != reported || length > most {
        return Err(internal(format!("the worker wrote {length} bytes but reported {reported}")));
    }
    let mut view = Vec::new();
    output.rewind().and_then(|()| output.take(most).read_to_end(&mut view)).map_err(internal)?;
    Ok(view)
}

/// Sends the request and the file. The caller ignores errors, because the exit status of the worker explains them.
async fn send(mut input: ChildStdin, request: &WorkerRequest, file: Option<(File, u64)>) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    input.write_all(&line).await?;
    if let Some((file, length)) = file {
        let mut file = tokio::fs::File::from_std(file);
        file.rewind().await?;
        tokio::io::copy(&mut file.take(length), &mut input).await?;
    }
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

/// Waits until a process and those that it started use more memory or processor time than they may.
async fn wait_until_limit_is_exceeded(id: Option<u32>, limits: &Limits) -> Error {
    loop {
        sleep(POLL_INTERVAL).await;
        let used = id.map(usage).unwrap_or_default();
        if used.resident > limits.resident {
            return memory_limit_error(limits);
        }
        if used.processor > limits.hard() {
            return time_limit_error(limits);
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

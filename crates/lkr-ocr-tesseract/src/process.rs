//! Running the program once.

use std::{
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lkr_parsers::{Error, ErrorKind, Result};

/// How often a running process is checked for its end. Chosen, not measured.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The maximum length of a stream of output that is read. The text of a page is shorter.
const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// The output of a run.
pub(crate) struct ProgramOutput {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

/// Runs the program with `input` as its standard input, and kills it at `deadline`.
pub(crate) fn run(
    program: &Path,
    arguments: &[&str],
    input: Vec<u8>,
    deadline: Instant,
) -> Result<ProgramOutput> {
    let child = Command::new(program)
        .args(arguments)
        // Only one page is recognised at a time, and searches need the other processors.
        .env("OMP_THREAD_LIMIT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = KillOnDrop(child.map_err(|error| run_error(&error))?);
    let sender = child.0.stdin.take().map(|mut pipe| thread::spawn(move || pipe.write_all(&input)));
    let stdout = child.0.stdout.take().map(|pipe| thread::spawn(move || read_output(pipe)));
    let stderr = child.0.stderr.take().map(|pipe| thread::spawn(move || read_output(pipe)));
    let status = loop {
        match child.0.try_wait().map_err(|error| run_error(&error))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => return Err(timeout_error()),
            None => thread::sleep(POLL_INTERVAL),
        }
    };
    let stdout = stdout.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let stderr = stderr.and_then(|thread| thread.join().ok()).unwrap_or_default();
    // The sender fails if the program ends before it has read all of its input; the exit status decides.
    let _ = sender.map(thread::JoinHandle::join);
    let stderr = String::from_utf8_lossy(&stderr).into_owned();
    if status.success() {
        return Ok(ProgramOutput { stdout, stderr });
    }
    let reason = stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Error::new(
        ErrorKind::Internal,
        "run tesseract",
        format!("the program failed with {status}: {reason}"),
    ))
}

fn read_output(pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    bytes
}

fn run_error(error: &io::Error) -> Error {
    Error::new(ErrorKind::Internal, "run tesseract", error.to_string())
}

fn timeout_error() -> Error {
    Error::new(ErrorKind::Limit, "run tesseract", "recognising the page exceeded the time limit")
}

/// Kills the process when it is dropped.
struct KillOnDrop(Child);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

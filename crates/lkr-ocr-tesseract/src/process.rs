//! One run of the program.

use std::{
    io::{self, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use lkr_parsers::{Error, ErrorKind, Result};

/// How often a running process is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The most that is read of what a run says. A page has less.
const MAX_OUTPUT_BYTES: u64 = 4 * 1024 * 1024;

/// What a run printed.
pub(crate) struct Printed {
    pub(crate) output: Vec<u8>,
    pub(crate) errors: String,
}

/// Runs the program with `input` on its standard input until `deadline`.
pub(crate) fn run(program: &Path, arguments: &[&str], input: Vec<u8>, deadline: Instant) -> Result<Printed> {
    let child = Command::new(program)
        .args(arguments)
        // One page is read at a time, and searches go on meanwhile.
        .env("OMP_THREAD_LIMIT", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = Ended(child.map_err(|error| failed(&error))?);
    let sender = child.0.stdin.take().map(|mut pipe| thread::spawn(move || pipe.write_all(&input)));
    let output = child.0.stdout.take().map(|pipe| thread::spawn(move || read(pipe)));
    let errors = child.0.stderr.take().map(|pipe| thread::spawn(move || read(pipe)));
    let status = loop {
        match child.0.try_wait().map_err(|error| failed(&error))? {
            Some(status) => break status,
            None if Instant::now() >= deadline => return Err(too_slow()),
            None => thread::sleep(LOOK),
        }
    };
    let output = output.and_then(|thread| thread.join().ok()).unwrap_or_default();
    let errors = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
    // A program that ends before it has read all makes the sender fail, which is no matter by itself.
    let _ = sender.map(thread::JoinHandle::join);
    let errors = String::from_utf8_lossy(&errors).into_owned();
    if status.success() {
        return Ok(Printed { output, errors });
    }
    let reason = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    Err(Error::new(ErrorKind::Internal, "run tesseract", format!("it ended with {status}: {reason}")))
}

fn read(pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = pipe.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes);
    bytes
}

fn failed(error: &io::Error) -> Error {
    Error::new(ErrorKind::Internal, "run tesseract", error.to_string())
}

fn too_slow() -> Error {
    Error::new(ErrorKind::Limit, "run tesseract", "the page takes too long to read")
}

/// A process that does not outlive this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

//! The worker process, seen from inside.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    process::ExitCode,
    time::Instant,
};

use lkr_parsers::{Parser, Source, encode_blocks};

use crate::{
    Error, ErrorKind, Result,
    confine::{close_inherited_files, confine, exit_with_parent},
    error::{OPERATION, internal},
    message::{ExtractionRequest, OutputSummary, Report, WorkerError},
};

/// The maximum length of the request line.
const MAX_REQUEST_BYTES: u64 = 1024 * 1024;

/// Runs a worker process: reads a request and one file from the parent, extracts the text, and reports to the parent.
///
/// Must be the first call of the process, because it closes all inherited files. `build` builds the parser for a plan.
/// The process sets its limits irrevocably before it reads the file. If the parent ends before it sends a request, this
/// returns.
pub fn run_worker(build: impl FnOnce(serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>>) -> ExitCode {
    close_inherited_files();
    let Ok(output) = take_stdout() else { return ExitCode::FAILURE };
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut line = Vec::new();
    match (&mut input).take(MAX_REQUEST_BYTES).read_until(b'\n', &mut line) {
        Ok(length) if length > 0 => {}
        _ => return ExitCode::SUCCESS,
    }
    let report = match extract(&line, input, output, build) {
        Ok(summary) => Report::Extracted(summary),
        Err(error) => Report::Refused(WorkerError::from(&error)),
    };
    let reported = serde_json::to_vec(&report).map(|report| {
        let line = [b"\n", &report[..], b"\n"].concat();
        std::io::stderr().lock().write_all(&line)
    });
    if matches!(reported, Ok(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Takes standard output for the text, and redirects what libraries print to standard error.
fn take_stdout() -> std::io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(File::from(output))
}

fn extract(
    request: &[u8],
    mut input: impl Read,
    mut output: impl Write,
    build: impl FnOnce(serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>>,
) -> Result<OutputSummary> {
    let started = Instant::now();
    let request: ExtractionRequest = serde_json::from_slice(request).map_err(internal)?;
    confine(&request.limits);
    exit_with_parent();
    let parser = build(request.plan)?;
    let length = usize::try_from(request.length).map_err(internal)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| {
        Error::new(ErrorKind::Limit, OPERATION, "the file does not fit into the memory limit")
    })?;
    input.by_ref().take(request.length).read_to_end(&mut bytes).map_err(internal)?;
    if bytes.len() != length {
        return Err(internal("the worker received only part of the file"));
    }
    let source = Source {
        bytes: &bytes,
        file_name: Some(&request.file_name),
        media_type: request.media_type.as_deref(),
        deadline: started.checked_add(request.limits.soft()),
    };
    let parsed = parser.parse(&source)?;
    drop(bytes);
    let blocks = encode_blocks(&parsed.blocks)?;
    output.write_all(parsed.text.as_bytes()).map_err(internal)?;
    output.write_all(&blocks).map_err(internal)?;
    output.flush().map_err(internal)?;
    Ok(OutputSummary::new(&parsed.text, &blocks, parsed.warnings))
}

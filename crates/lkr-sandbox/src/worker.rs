//! The child's side.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    process::ExitCode,
    time::Instant,
};

use lkr_parsers::{Parser, Source, encode_blocks};

use crate::{
    Error, ErrorKind, Result,
    confine::{close_others, confine, end_with_parent},
    error::{OPERATION, internal},
    message::{Order, Refusal, Report, Summary},
};

/// The longest order.
const MAX_ORDER_BYTES: u64 = 1024 * 1024;

/// Reads one file as its parent orders it, and tells the parent what came of it: the whole life of a worker's process.
///
/// Nothing else may have begun in the process: what it has open is closed first. `build` makes the parser that a plan
/// asks for. The process sets its limits for good before it takes the file.
/// Where the parent goes away before it sends an order, it ends.
pub fn run_worker(build: impl FnOnce(serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>>) -> ExitCode {
    close_others();
    let Ok(output) = take_stdout() else { return ExitCode::FAILURE };
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut line = Vec::new();
    match (&mut input).take(MAX_ORDER_BYTES).read_until(b'\n', &mut line) {
        Ok(length) if length > 0 => {}
        _ => return ExitCode::SUCCESS,
    }
    let report = match extract(&line, input, output, build) {
        Ok(summary) => Report::Extracted(summary),
        Err(error) => Report::Refused(Refusal::from(&error)),
    };
    let told = serde_json::to_vec(&report).map(|report| {
        let line = [b"\n", &report[..], b"\n"].concat();
        std::io::stderr().lock().write_all(&line)
    });
    if matches!(told, Ok(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The standard output for the text alone: what a library prints goes where the report goes.
fn take_stdout() -> std::io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3)?;
    rustix::stdio::dup2_stdout(std::io::stderr())?;
    Ok(File::from(output))
}

fn extract(
    order: &[u8],
    mut input: impl Read,
    mut output: impl Write,
    build: impl FnOnce(serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>>,
) -> Result<Summary> {
    let begun = Instant::now();
    let order: Order = serde_json::from_slice(order).map_err(internal)?;
    confine(&order.limits);
    end_with_parent();
    let parser = build(order.plan)?;
    let length = usize::try_from(order.length).map_err(internal)?;
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(length)
        .map_err(|_| Error::new(ErrorKind::Limit, OPERATION, "it needs more memory than a file may have"))?;
    input.by_ref().take(order.length).read_to_end(&mut bytes).map_err(internal)?;
    if bytes.len() != length {
        return Err(internal("the file was cut off on its way to the worker"));
    }
    let source = Source {
        bytes: &bytes,
        file_name: Some(&order.file_name),
        media_type: order.media_type.as_deref(),
        deadline: begun.checked_add(order.limits.soft()),
    };
    let parsed = parser.parse(&source)?;
    drop(bytes);
    let blocks = encode_blocks(&parsed.blocks)?;
    output.write_all(parsed.text.as_bytes()).map_err(internal)?;
    output.write_all(&blocks).map_err(internal)?;
    output.flush().map_err(internal)?;
    Ok(Summary::new(&parsed.text, &blocks, parsed.warnings))
}

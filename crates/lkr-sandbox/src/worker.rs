//! The worker process, seen from inside.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read, Write},
    path::PathBuf,
    process::ExitCode,
};

use lkr_parsers::{Clock, Deadline, Parser, Source, encode_blocks};
use serde_json::Value;

use crate::{
    Confinement, Error, ErrorKind, Limits, OcrProcess, OpenedOcr, ProgramFiles, Result,
    confine::{Niceness, close_inherited_files, exit_with_parent, set_limits},
    error::{OPERATION, internal},
    message::{FileRequest, OutputSummary, Report, WorkerCommand, WorkerError, WorkerRequest},
    ocr::{OcrRequest, serve},
    seal::{Access, seal},
    viewer::FileViewer,
};

/// The maximum length of the request line.
const MAX_REQUEST_BYTES: u64 = 4 * 1024 * 1024;

/// What the processes of a sandbox run.
pub trait WorkerProgram {
    /// Opens the parser for a request, with all files and libraries that it needs: afterwards it can open no file and
    /// start no program. The file has not been read yet.
    ///
    /// # Errors
    /// If the parser cannot be opened.
    fn open_parser(&self, request: &ParserRequest) -> lkr_parsers::Result<Box<dyn Parser>>;

    /// Opens the viewer for a plan, with all libraries that it needs: afterwards it can open no file. The file has not been
    /// read yet.
    ///
    /// # Errors
    /// If the viewer cannot be opened, or the program has none.
    fn open_viewer(&self, plan: &Value) -> lkr_parsers::Result<Box<dyn FileViewer>> {
        let _ = plan;
        Err(lkr_parsers::Error::new(
            lkr_parsers::ErrorKind::Internal,
            "open viewer",
            "the program has no viewer",
        ))
    }

    /// The files that OCR needs. It is opened when nothing else can be reached.
    fn ocr_files(&self, plan: &Value) -> ProgramFiles {
        let _ = plan;
        ProgramFiles::default()
    }

    /// Opens OCR, in the process that [`ParserRequest::start_ocr`] started.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open_ocr(&self, plan: &Value) -> lkr_parsers::Result<OpenedOcr>;
}

/// What a worker builds its parser from.
#[derive(Debug)]
pub struct ParserRequest {
    /// The plan that was given to [`extract`](crate::Sandbox::extract).
    pub plan: Value,
    /// The name of the file.
    pub file_name: String,
    command: WorkerCommand,
    limits: Limits,
}

impl ParserRequest {
    /// Starts OCR in a process of its own, which opens it with `plan`.
    ///
    /// # Errors
    /// If the process cannot be started, or [`WorkerProgram::open_ocr`] fails.
    pub fn start_ocr(&self, name: &'static str, plan: Value) -> lkr_parsers::Result<OcrProcess> {
        OcrProcess::start(name, &self.command, OcrRequest { plan, limits: self.limits })
    }
}

/// Runs a worker process: reads a request from the parent, carries it out, and reports to the parent.
///
/// Must be the first call of the process, because it closes all inherited files. The process limits itself irrevocably
/// before it reads the file. If the parent ends before it sends a request, this returns.
pub fn run_worker(program: &impl WorkerProgram) -> ExitCode {
    close_inherited_files();
    let Ok(mut output) = take_stdout() else { return ExitCode::FAILURE };
    let mut input = BufReader::new(std::io::stdin().lock());
    let mut line = Vec::new();
    match (&mut input).take(MAX_REQUEST_BYTES).read_until(b'\n', &mut line) {
        Ok(length) if length > 0 => {}
        _ => return ExitCode::SUCCESS,
    }
    let result = match serde_json::from_slice(&line) {
        Ok(WorkerRequest::Extract(request)) => {
            extract(program, request, input, output).map(Report::Extracted)
        }
        Ok(WorkerRequest::View(request)) => view(program, request, input, output).map(Report::Viewed),
        Ok(WorkerRequest::Confine) => {
            Ok(Report::Confined(confine(&Limits::default(), Niceness::Viewer, Access::Nothing)))
        }
        Ok(WorkerRequest::Ocr(request)) => {
            let OcrRequest { plan, limits } = request;
            let mut files = program.ocr_files(&plan);
            files.readable.extend(inherited_folders());
            confine(&limits, Niceness::Extractor, Access::Programs(&files));
            let served = serve(program.open_ocr(&plan), &mut input, &mut output);
            return if served.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Err(error) => Err(internal(error)),
    };
    report(&result.unwrap_or_else(|error| Report::Refused(WorkerError::from(&error))))
}

/// The folders that the environment names for libraries and data of programs.
fn inherited_folders() -> impl Iterator<Item = PathBuf> {
    let values = ["LD_LIBRARY_PATH", "TESSDATA_PREFIX"].into_iter().filter_map(std::env::var_os);
    let folders = values.flat_map(|value| std::env::split_paths(&value).collect::<Vec<_>>());
    folders.filter(|folder| folder.is_absolute())
}

/// Reports in the last line of standard error.
fn report(report: &Report) -> ExitCode {
    let reported = serde_json::to_vec(report).map(|report| {
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

/// Limits this process and takes away what it does not need.
fn confine(limits: &Limits, niceness: Niceness, access: Access<'_>) -> Confinement {
    set_limits(limits, niceness);
    let confinement = seal(access);
    exit_with_parent();
    confinement
}

fn extract(
    program: &impl WorkerProgram,
    request: FileRequest,
    input: impl Read,
    mut output: impl Write,
) -> Result<OutputSummary> {
    let FileRequest { command, plan, file_name, media_type, length, limits } = request;
    let deadline = Deadline::after(Clock::Processor, limits.soft());
    let request = ParserRequest { plan, file_name, command, limits };
    let parser = program.open_parser(&request);
    confine(&limits, Niceness::Extractor, Access::Nothing);
    let parser = parser?;
    let bytes = read_file(input, length)?;
    let source = Source {
        bytes: &bytes,
        file_name: Some(&request.file_name),
        media_type: media_type.as_deref(),
        deadline: Some(deadline),
    };
    let parsed = parser.parse(&source)?;
    drop(bytes);
    let blocks = encode_blocks(&parsed.blocks)?;
    output.write_all(parsed.text.as_bytes()).map_err(internal)?;
    output.write_all(&blocks).map_err(internal)?;
    output.flush().map_err(internal)?;
    Ok(OutputSummary::new(&parsed.text, &blocks, parsed.warnings))
}

/// Writes the view of a file, and returns its length.
fn view(
    program: &impl WorkerProgram,
    request: FileRequest,
    input: impl Read,
    mut output: impl Write,
) -> Result<u64> {
    let FileRequest { plan, file_name, media_type, length, limits, .. } = request;
    let deadline = Deadline::after(Clock::Processor, limits.soft());
    let viewer = program.open_viewer(&plan);
    confine(&limits, Niceness::Viewer, Access::Nothing);
    let viewer = viewer?;
    let bytes = read_file(input, length)?;
    let source = Source {
        bytes: &bytes,
        file_name: Some(&file_name),
        media_type: media_type.as_deref(),
        deadline: Some(deadline),
    };
    let view = viewer.view(&source)?;
    output.write_all(&view).and_then(|()| output.flush()).map_err(internal)?;
    Ok(view.len() as u64)
}

fn read_file(input: impl Read, length: u64) -> Result<Vec<u8>> {
    let length = usize::try_from(length).map_err(internal)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(length).map_err(|_| {
        Error::new(ErrorKind::Limit, OPERATION, "the file does not fit into the memory limit")
    })?;
    input.take(length as u64).read_to_end(&mut bytes).map_err(internal)?;
    if bytes.len() != length {
        return Err(internal("the worker received only part of the file"));
    }
    Ok(bytes)
}

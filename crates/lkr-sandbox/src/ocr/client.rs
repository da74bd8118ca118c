use std::{
    ffi::OsString,
    io::{BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{Mutex, PoisonError},
    time::Instant,
};

use lkr_parsers::{Ocr, PageImage, Result};

use super::message::{Answer, OcrRequest, Opened, PageRequest, broken, parser_error, read_line, write_line};
use crate::message::{WorkerCommand, WorkerRequest};

/// OCR in a child process of the worker. The process ends with the worker or when this is dropped.
#[derive(Debug)]
pub struct OcrProcess {
    name: &'static str,
    warning: Option<String>,
    pipes: Mutex<Pipes>,
    /// It is not waited for: it ends when its input ends.
    _process: Child,
}

#[derive(Debug)]
struct Pipes {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl OcrProcess {
    pub(crate) fn start(name: &'static str, command: &WorkerCommand, request: OcrRequest) -> Result<Self> {
        let WorkerCommand { program, arguments } = command;
        let mut process = start_process(program, arguments).map_err(broken)?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(broken("the OCR process has no pipes"));
        };
        let mut pipes = Pipes { input, output: BufReader::new(output) };
        write_line(&mut pipes.input, &WorkerRequest::Ocr(request)).map_err(broken)?;
        let Opened { warning } = pipes.answer()?;
        Ok(Self { name, warning, pipes: Mutex::new(pipes), _process: process })
    }

    /// A warning for the user, for example about languages that are not installed.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }
}

fn start_process(program: &OsString, arguments: &[OsString]) -> std::io::Result<Child> {
    let mut command = Command::new(program);
    // It stays in the process group of the worker, with which it is killed.
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn()
}

impl Pipes {
    fn answer<T: serde::de::DeserializeOwned>(&mut self) -> Result<T> {
        match read_line(&mut self.output).map_err(broken)? {
            Some(Answer::Done(answer)) => Ok(answer),
            Some(Answer::Failed(error)) => Err(parser_error(error)),
            None => Err(broken("the OCR process ended")),
        }
    }
}

impl Ocr for OcrProcess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String> {
        let PageImage { width, height, grey, dpi } = *image;
        if u64::from(width) * u64::from(height) != grey.len() as u64 {
            return Err(broken(format!("{} bytes do not match {width} × {height} pixels", grey.len())));
        }
        let time = deadline.saturating_duration_since(Instant::now());
        let mut pipes = self.pipes.lock().unwrap_or_else(PoisonError::into_inner);
        write_line(&mut pipes.input, &PageRequest { width, height, dpi, time }).map_err(broken)?;
        pipes.input.write_all(grey).and_then(|()| pipes.input.flush()).map_err(broken)?;
        pipes.answer()
    }
}

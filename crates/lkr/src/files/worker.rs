//! The processes that read files.

use std::{process::ExitCode, sync::Arc};

use lkr_domain::Parsed;
use lkr_ocr_tesseract::Tesseract;
use lkr_parsers::{Error, ErrorKind, Format, Parser, Result, Source, format_of};
use lkr_sandbox::{FileViewer, OpenedOcr, ParserRequest, ProgramFiles, WorkerProgram};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    pages::PageViewer,
    plugins::{FilePlugins, FileTools, OptionalOcr, PluginParser, ocr},
    reader::OCR_TIME,
};

/// What a worker opens its parser from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ParserPlan {
    pub(super) plugins: FilePlugins,
    pub(super) tools: FileTools,
}

pub(super) fn plan_error(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Internal, "read parser plan", error)
}

/// A parser that was opened before its file is read, for a worker that can open nothing afterwards.
#[derive(Debug)]
pub(super) struct OpenedParser {
    pub(super) parser: Arc<dyn Parser>,
    pub(super) warning: Option<String>,
    /// What the error of a file that has only pictures adds.
    pub(super) ocr_hint: Option<String>,
}

impl OpenedParser {
    fn with_ocr_hint(&self, error: Error) -> Error {
        match &self.ocr_hint {
            Some(hint) if error.kind() == ErrorKind::Pictures => {
                Error::new(ErrorKind::Pictures, error.operation(), format!("{}; {hint}", error.reason()))
            }
            _ => error,
        }
    }
}

impl Parser for OpenedParser {
    fn name(&self) -> &'static str {
        self.parser.name()
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        format_of(source)?;
        let mut parsed = self.parser.parse(source).map_err(|error| self.with_ocr_hint(error))?;
        parsed.warnings.extend(self.warning.clone());
        Ok(parsed)
    }
}

/// Runs a worker process of [`FileReader::in_workers`](super::FileReader::in_workers): it reads one file from standard
/// input, and writes the text to standard output and its report to standard error.
#[must_use]
pub fn run_worker() -> ExitCode {
    lkr_sandbox::run_worker(&FileWorker)
}

struct FileWorker;

impl WorkerProgram for FileWorker {
    fn open_parser(&self, request: &ParserRequest) -> Result<Box<dyn Parser>> {
        let ParserPlan { plugins, tools } = plan(&request.plan)?;
        let parser = PluginParser { plugins, tools, ocr_time: OCR_TIME };
        // A name of no known format is refused when the file is parsed.
        let Some(format) = Format::from_file_name(&request.file_name) else { return Ok(Box::new(parser)) };
        parser.preload(format);
        let opened =
            parser.open(format, || if parser.plugins.uses_ocr() { start_ocr(request) } else { Ok(None) })?;
        Ok(Box::new(opened))
    }

    fn open_viewer(&self, plan: &Value) -> Result<Box<dyn FileViewer>> {
        Ok(Box::new(PageViewer::open(plan.clone())?))
    }

    fn ocr_files(&self, value: &Value) -> ProgramFiles {
        let program = plan(value).ok().and_then(|plan| plan.tools.tesseract);
        let files = program.as_deref().map(Tesseract::files).unwrap_or_default();
        ProgramFiles { readable: files.readable, executable: files.executable }
    }

    fn open_ocr(&self, value: &Value) -> Result<OpenedOcr> {
        let ParserPlan { plugins, tools } = plan(value)?;
        let opened = ocr(&plugins, &tools)?;
        let (ocr, warning) =
            opened.ok_or_else(|| Error::new(ErrorKind::Internal, "open plugin", "OCR is turned off"))?;
        Ok(OpenedOcr { ocr, warning })
    }
}

fn plan(value: &Value) -> Result<ParserPlan> {
    ParserPlan::deserialize(value).map_err(plan_error)
}

fn start_ocr(request: &ParserRequest) -> Result<OptionalOcr> {
    let process = request.start_ocr(Tesseract::NAME, request.plan.clone())?;
    let warning = process.warning().map(str::to_owned);
    Ok(Some((Arc::new(process), warning)))
}

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_parsers::{Format, Parser};
use lkr_sandbox::{Extracted, FileSource, Limits, Mode, Sandbox, SandboxOptions};
use serde::{Deserialize, Serialize};

use super::plugins::{Chosen, FilePlugins, FileTools};
use crate::{Result, error::During};

/// What a second plugin has where the first one crashed late.
const LEAST_TIME: Duration = Duration::from_secs(3);

/// The time that text in pictures may take for one file.
const OCR_TIME: Duration = Duration::from_mins(1);

/// Reads files with plugins, in child processes where it is given a program for them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileReader {
    sandbox: Sandbox,
    tools: FileTools,
    limits: Limits,
}

/// What a parser is built from.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    plugins: FilePlugins,
    tools: FileTools,
}

impl FileReader {
    /// A reader whose parsers run in child processes: `program` started with `arguments`, which calls [`work`]. What
    /// is on its way lies in files without names in `spool`.
    ///
    /// # Errors
    /// `Internal` outside of a runtime, and where the folder cannot be made.
    pub fn in_workers(
        program: PathBuf,
        arguments: Vec<OsString>,
        spool: PathBuf,
        tools: FileTools,
    ) -> Result<Self> {
        Self::with(Mode::Worker { program, arguments }, spool, tools)
    }

    /// A reader whose parsers run in this process. What a file does to its parser it does to the process.
    ///
    /// # Errors
    /// `Internal` outside of a runtime, and where the folder cannot be made.
    pub fn in_process(spool: PathBuf, tools: FileTools) -> Result<Self> {
        Self::with(Mode::InProcess(Arc::new(build)), spool, tools)
    }

    fn with(mode: Mode, spool: PathBuf, tools: FileTools) -> Result<Self> {
        let sandbox = Sandbox::new(SandboxOptions::new(mode, spool)).during("open file reader")?;
        Ok(Self { sandbox, tools, limits: Limits::default() })
    }

    /// The same within other limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// What was found on this machine.
    #[must_use]
    pub const fn tools(&self) -> &FileTools {
        &self.tools
    }

    /// The folder of files without names.
    #[must_use]
    pub fn spool(&self) -> &Path {
        self.sandbox.spool()
    }

    /// The text of a file with its blocks. A caller that goes away ends the reading. Where a plugin crashes on the
    /// file, a sturdier one reads it instead, with a warning, if there is one.
    ///
    /// # Errors
    /// `Invalid` where the file cannot be read, `Overloaded` where too many wait.
    pub async fn read(&self, source: FileSource, plugins: &FilePlugins) -> Result<Extracted> {
        let (begun, again) = (Instant::now(), source.try_clone().during("read file")?);
        match self.read_once(source, plugins, self.limits).await {
            Err(error) if error.kind() == lkr_sandbox::ErrorKind::Crash => {
                let Some((plugins, warning)) = plugins.instead(&again.file_name) else {
                    return Err(error).during("read file");
                };
                let time = self.limits.time.saturating_sub(begun.elapsed()).max(LEAST_TIME);
                let limits = Limits { time, ..self.limits };
                let mut extracted = self.read_once(again, &plugins, limits).await.during("read file")?;
                extracted.warn(warning);
                Ok(extracted)
            }
            read => read.during("read file"),
        }
    }

    async fn read_once(
        &self,
        source: FileSource,
        plugins: &FilePlugins,
        limits: Limits,
    ) -> lkr_sandbox::Result<Extracted> {
        let plan = Plan { plugins: plugins.clone(), tools: self.tools.clone() };
        let plan = serde_json::to_value(plan)
            .map_err(|error| lkr_sandbox::Error::new(lkr_sandbox::ErrorKind::Internal, "read file", error))?;
        let has_pictures = Format::from_file_name(&source.file_name) == Some(Format::Pdf);
        let reads_them = has_pictures && plugins.reads_pictures();
        let pictures = if reads_them { OCR_TIME } else { limits.pictures };
        self.sandbox.extract(plan, source, Limits { pictures, ..limits }).await
    }
}

/// What a worker of [`FileReader::in_workers`] does, from its start to its end: it reads one file that comes on the
/// standard input, and tells of it on the standard output and the standard error.
#[must_use]
pub fn work() -> ExitCode {
    lkr_sandbox::work(build)
}

fn build(plan: serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>> {
    let plan: Plan = serde_json::from_value(plan)
        .map_err(|error| lkr_parsers::Error::new(lkr_parsers::ErrorKind::Internal, "read the plan", error))?;
    let Plan { plugins, tools } = plan;
    Ok(Box::new(Chosen { plugins, tools, ocr_time: OCR_TIME }))
}

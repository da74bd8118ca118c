use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use lkr_parsers::{Format, Parser};
use lkr_sandbox::{
    Extracted, FileSource, FileViewer, Limits, ReaderFactory, Sandbox, SandboxMode, SandboxOptions,
};

use super::{
    pages::PageViewer,
    plugins::{FilePlugins, FileTools, PluginParser},
    worker::{ParserPlan, plan_error},
};
use crate::{Result, error::During};

/// The time limit of OCR for one file. Chosen, not measured. See docs/studies.md#sandbox-limits.
pub(super) const OCR_TIME: Duration = Duration::from_mins(1);

/// Extracts text from files with plugins, in child processes if it is given a program for them. Cheap to clone.
#[derive(Debug, Clone)]
pub struct FileReader {
    sandbox: Sandbox,
    tools: FileTools,
    limits: Limits,
}

impl FileReader {
    /// A reader whose parsers run in child processes. The reader starts `program` with `arguments`, and the program
    /// must then call [`run_worker`](super::run_worker). Extracted texts are held in unnamed temporary files in `spool`.
    ///
    /// # Errors
    /// `Internal` outside of a tokio runtime, or if the folder cannot be created.
    pub fn in_workers(
        program: PathBuf,
        arguments: Vec<OsString>,
        spool: PathBuf,
        tools: FileTools,
    ) -> Result<Self> {
        Self::with(SandboxMode::Worker { program, arguments }, spool, tools)
    }

    /// A reader whose parsers run in this process. A file that crashes its parser can crash the process.
    ///
    /// # Errors
    /// `Internal` outside of a tokio runtime, or if the folder cannot be created.
    pub fn in_process(spool: PathBuf, tools: FileTools) -> Result<Self> {
        Self::with(SandboxMode::InProcess(Arc::new(PluginReaders)), spool, tools)
    }

    fn with(mode: SandboxMode, spool: PathBuf, tools: FileTools) -> Result<Self> {
        let sandbox = Sandbox::new(SandboxOptions::new(mode, spool)).during("open file reader")?;
        Ok(Self { sandbox, tools, limits: Limits::default() })
    }

    /// Replaces the limits.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    pub(super) const fn current_limits(&self) -> Limits {
        self.limits
    }

    pub(super) const fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// The external tools of this reader.
    #[must_use]
    pub const fn tools(&self) -> &FileTools {
        &self.tools
    }

    /// The folder of the temporary files.
    #[must_use]
    pub fn spool(&self) -> &Path {
        self.sandbox.spool()
    }

    /// Extracts the text of a file with its blocks. Dropping the future ends the extraction; one in this process goes on to its
    /// end or its time limit and keeps its place until then. If a plugin crashes on the
    /// file and a more robust plugin exists, that one reads the file and a warning is added.
    ///
    /// # Errors
    /// `Invalid` if the file cannot be read, `Overloaded` if too many files wait.
    pub async fn read(&self, source: FileSource, plugins: &FilePlugins) -> Result<Extracted> {
        self.read_for("", source, plugins).await
    }

    /// As [`read`](Self::read), in the turn of an account: if many files wait, accounts take turns, and an account
    /// without a file being read need not wait for the files of one other account.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub async fn read_for(
        &self,
        account: &str,
        source: FileSource,
        plugins: &FilePlugins,
    ) -> Result<Extracted> {
        let second = source.try_clone().during("read file")?;
        match self.read_once(account, source, plugins).await {
            Err(error) if error.kind() == lkr_sandbox::ErrorKind::Crash => {
                let Some((plugins, warning)) = plugins.fallback(&second.file_name) else {
                    return Err(error).during("read file");
                };
                // With the whole limit again, so that the result does not depend on when the first plugin crashed.
                let mut extracted = self.read_once(account, second, &plugins).await.during("read file")?;
                extracted.warn(warning);
                Ok(extracted)
            }
            result => result.during("read file"),
        }
    }

    async fn read_once(
        &self,
        account: &str,
        source: FileSource,
        plugins: &FilePlugins,
    ) -> lkr_sandbox::Result<Extracted> {
        let plan = ParserPlan { plugins: plugins.clone(), tools: self.tools.clone() };
        let plan = serde_json::to_value(plan)
            .map_err(|error| lkr_sandbox::Error::new(lkr_sandbox::ErrorKind::Internal, "read file", error))?;
        let may_have_images = Format::from_file_name(&source.file_name) == Some(Format::Pdf);
        let limits = self.limits;
        let ocr_time = if may_have_images && plugins.uses_ocr() { OCR_TIME } else { limits.ocr_time };
        self.sandbox.extract_for(account, plan, source, Limits { ocr_time, ..limits }).await
    }
}

/// Builds the parsers and viewers of plugins in this process.
struct PluginReaders;

impl ReaderFactory for PluginReaders {
    fn parser(&self, plan: serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>> {
        let ParserPlan { plugins, tools } = serde_json::from_value(plan).map_err(plan_error)?;
        Ok(Box::new(PluginParser { plugins, tools, ocr_time: OCR_TIME }))
    }

    fn viewer(&self, plan: serde_json::Value) -> lkr_parsers::Result<Box<dyn FileViewer>> {
        Ok(Box::new(PageViewer::open(plan)?))
    }
}

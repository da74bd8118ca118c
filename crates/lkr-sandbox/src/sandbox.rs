use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{Read, Seek},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use lkr_parsers::{Clock, Deadline, Parser, Source};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Confinement, Extracted, Limits, Result,
    child::IdleWorker,
    confinement,
    error::internal,
    fair_gate::FairGate,
    message::{FileRequest, WorkerCommand},
    viewer::FileViewer,
};

/// Builds what reads files in this process.
pub trait ReaderFactory: Send + Sync {
    /// Builds the parser for a plan.
    ///
    /// # Errors
    /// If the parser cannot be built.
    fn parser(&self, plan: serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>>;

    /// Builds the viewer for a plan.
    ///
    /// # Errors
    /// If the viewer cannot be built.
    fn viewer(&self, plan: serde_json::Value) -> lkr_parsers::Result<Box<dyn FileViewer>>;
}

/// Where parsers run.
#[derive(Clone)]
pub enum SandboxMode {
    /// In child processes: this program with these arguments, which must call [`run_worker`](crate::run_worker). One
    /// child reads one file.
    Worker {
        /// The program.
        program: PathBuf,
        /// The arguments that make it run as a worker.
        arguments: Vec<OsString>,
    },
    /// In this process, on the blocking pool. A parser can crash the process, so this is for trusted files only.
    InProcess(Arc<dyn ReaderFactory>),
}

impl fmt::Debug for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker { program, .. } => f.debug_tuple("Worker").field(program).finish(),
            Self::InProcess(_) => f.write_str("InProcess"),
        }
    }
}

/// The options of a sandbox.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// Where parsers run.
    pub mode: SandboxMode,
    /// The folder of the unnamed temporary files.
    pub spool: PathBuf,
    /// How many files are read concurrently.
    pub concurrency: usize,
    /// How many further files may wait. Chosen, not measured.
    pub max_waiting: usize,
    /// How many workers are started ahead of time, so that small files need not wait for a start.
    pub idle_workers: usize,
}

impl SandboxOptions {
    /// The defaults; as many concurrent files as there are processors.
    #[must_use]
    pub fn new(mode: SandboxMode, spool: PathBuf) -> Self {
        let concurrency = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { mode, spool, concurrency, max_waiting: 64, idle_workers: 2 }
    }
}

/// A file to extract.
#[derive(Debug)]
pub struct FileSource {
    /// Its name; the extension determines the format.
    pub file_name: String,
    /// The declared media type.
    pub media_type: Option<String>,
    /// The file, which is read from its start whatever its position.
    pub file: File,
    /// Its length in bytes.
    pub length: u64,
}

impl FileSource {
    /// Another handle of the same file.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            file_name: self.file_name.clone(),
            media_type: self.media_type.clone(),
            file: self.file.try_clone().map_err(internal)?,
            length: self.length,
        })
    }
}

/// Extracts text from files within limits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    state: Arc<SandboxState>,
}

#[derive(Debug)]
struct SandboxState {
    options: SandboxOptions,
    /// Starts and watches the processes, independent of the runtime of the caller.
    runtime: Handle,
    places: Arc<FairGate>,
    /// Places of files with OCR: fewer, so that files without OCR are not blocked.
    ocr_places: Arc<FairGate>,
    idle_workers: Mutex<Vec<IdleWorker>>,
}

impl Sandbox {
    /// Creates a sandbox on the current tokio runtime, and the spool folder if it does not exist.
    ///
    /// # Errors
    /// `Internal` outside of a tokio runtime, or if the folder cannot be created.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        let runtime = Handle::try_current().map_err(internal)?;
        std::fs::create_dir_all(&options.spool).map_err(|error| {
            internal(format!("folder {} could not be created: {error}", options.spool.display()))
        })?;
        let places = FairGate::new(options.concurrency, options.max_waiting);
        let ocr_places = FairGate::new(options.concurrency.saturating_sub(1), options.max_waiting);
        let idle_workers = Mutex::new(Vec::new());
        let sandbox =
            Self { state: Arc::new(SandboxState { options, runtime, places, ocr_places, idle_workers }) };
        sandbox.state.refill_idle_workers();
        if matches!(sandbox.state.options.mode, SandboxMode::Worker { .. }) {
            sandbox.state.runtime.spawn(Arc::clone(&sandbox.state).log_confinement());
        }
        Ok(sandbox)
    }

    /// What the system enforces on the workers, found out with a worker that reads no file.
    ///
    /// # Errors
    /// `Internal` if parsers run in this process, or if the worker cannot be started.
    pub async fn confinement(&self) -> Result<Confinement> {
        self.state.start_worker()?.confinement().await
    }

    /// The folder of the unnamed temporary files.
    #[must_use]
    pub fn spool(&self) -> &Path {
        &self.state.options.spool
    }

    /// Extracts the text of a file with the parser for `plan`. Dropping the future ends the extraction; one in this process goes
    /// on to its end or its time limit and keeps its place until then.
    ///
    /// # Errors
    /// `Overloaded` if too many files wait, kinds for which [`is_file_error`](crate::ErrorKind::is_file_error)
    /// is true, and `Internal`.
    pub async fn extract(
        &self,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Extracted> {
        self.extract_for("", plan, source, limits).await
    }

    /// Views a file with the viewer for `plan`, in the turn of an account as [`extract_for`](Self::extract_for). Dropping
    /// the future is as for [`extract`](Self::extract). The result is not trusted: `limits.output` bounds its length.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub async fn view_for(
        &self,
        account: &str,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Vec<u8>> {
        let state = Arc::clone(&self.state);
        let place = state.places.enter(account).await?;
        match &state.options.mode {
            SandboxMode::InProcess(readers) => {
                let readers = Arc::clone(readers);
                let view = move |source: &Source<'_>| Ok(readers.viewer(plan)?.view(source)?);
                state.in_process(source, limits, place, view).await
            }
            SandboxMode::Worker { .. } => {
                let _place = place;
                let work = Arc::clone(&state).in_worker(plan, source, limits, IdleWorker::view);
                AbortOnDropHandle::new(state.runtime.spawn(work)).await?
            }
        }
    }

    /// As [`extract`](Self::extract), in the turn of an account: accounts whose files wait take turns.
    ///
    /// # Errors
    /// As [`extract`](Self::extract).
    pub async fn extract_for(
        &self,
        account: &str,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Extracted> {
        let state = Arc::clone(&self.state);
        let uses_ocr = !limits.ocr_time.is_zero();
        let ocr_place = if uses_ocr { Some(state.ocr_places.enter(account).await?) } else { None };
        let places = (ocr_place, state.places.enter(account).await?);
        match &state.options.mode {
            SandboxMode::InProcess(readers) => {
                let (readers, spool) = (Arc::clone(readers), state.options.spool.clone());
                let extract = move |source: &Source<'_>| {
                    let parsed = readers.parser(plan)?.parse(source)?;
                    Extracted::new(&parsed, &spool)
                };
                state.in_process(source, limits, places, extract).await
            }
            SandboxMode::Worker { .. } => {
                let _places = places;
                let work = Arc::clone(&state).in_worker(plan, source, limits, IdleWorker::extract);
                AbortOnDropHandle::new(state.runtime.spawn(work)).await?
            }
        }
    }
}

impl SandboxState {
    /// Reads a file on the blocking pool. The thread has its places until it ends, whether or not somebody still waits for it: it
    /// cannot be stopped.
    async fn in_process<T: Send + 'static>(
        &self,
        source: FileSource,
        limits: Limits,
        places: impl Send + 'static,
        read: impl FnOnce(&Source<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let reading = self.runtime.spawn_blocking(move || {
            let _places = places;
            let mut bytes = Vec::new();
            let mut file = source.file;
            file.rewind().map_err(internal)?;
            file.take(source.length).read_to_end(&mut bytes).map_err(internal)?;
            read(&Source {
                bytes: &bytes,
                file_name: Some(&source.file_name),
                media_type: source.media_type.as_deref(),
                deadline: Some(Deadline::after(Clock::Wall, limits.soft())),
            })
        });
        reading.await?
    }

    /// Has a worker do its work on a file.
    async fn in_worker<T, F: Future<Output = Result<T>> + Send>(
        self: Arc<Self>,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
        work: impl FnOnce(IdleWorker, FileRequest, File) -> F + Send,
    ) -> Result<T> {
        let worker = match self.take_idle_worker() {
            Some(worker) => worker,
            None => self.start_worker()?,
        };
        let FileSource { file_name, media_type, file, length } = source;
        let command = self.command()?;
        let request = FileRequest { command, plan, file_name, media_type, length, limits };
        let result = work(worker, request, file).await;
        self.refill_idle_workers();
        result
    }

    fn start_worker(&self) -> Result<IdleWorker> {
        IdleWorker::start(&self.command()?, &self.options.spool)
    }

    fn command(&self) -> Result<WorkerCommand> {
        match &self.options.mode {
            SandboxMode::Worker { program, arguments } => {
                Ok(WorkerCommand { program: program.into(), arguments: arguments.clone() })
            }
            SandboxMode::InProcess(_) => Err(internal("the sandbox has no worker program")),
        }
    }

    /// Logs what confines the workers, once in a process.
    async fn log_confinement(self: Arc<Self>) {
        static IS_LOGGED: AtomicBool = AtomicBool::new(false);
        if IS_LOGGED.swap(true, Ordering::Relaxed) {
            return;
        }
        let confined = async { self.start_worker()?.confinement().await };
        match confined.await {
            Ok(confined) => confinement::log(&confined),
            Err(error) => tracing::warn!(%error, "confinement of parser workers could not be determined"),
        }
    }

    fn take_idle_worker(&self) -> Option<IdleWorker> {
        let mut idle_workers = self.idle_workers.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut worker) = idle_workers.pop() {
            if worker.is_running() {
                return Some(worker);
            }
        }
        None
    }

    /// Starts workers until the configured number is idle.
    fn refill_idle_workers(&self) {
        if !matches!(self.options.mode, SandboxMode::Worker { .. }) {
            return;
        }
        let _runtime = self.runtime.enter();
        let mut idle_workers = self.idle_workers.lock().unwrap_or_else(PoisonError::into_inner);
        while idle_workers.len() < self.options.idle_workers {
            match self.start_worker() {
                Ok(worker) => idle_workers.push(worker),
                Err(error) => {
                    tracing::warn!(%error, "idle parser worker could not be started");
                    return;
                }
            }
        }
    }
}

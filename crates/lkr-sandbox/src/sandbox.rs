use std::{
    ffi::OsString,
    fmt,
    fs::File,
    io::{Read, Seek},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use lkr_parsers::{Parser, Source};
use tokio::{runtime::Handle, sync::Semaphore};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    Error, ErrorKind, Extracted, Limits, Result,
    child::Waiting,
    error::{OPERATION, internal},
    message::Order,
};

/// Makes the parser that a plan asks for.
pub type Build = Arc<dyn Fn(serde_json::Value) -> lkr_parsers::Result<Box<dyn Parser>> + Send + Sync>;

/// Where parsers run.
#[derive(Clone)]
pub enum Mode {
    /// In child processes: this program with these arguments, which calls [`work`](crate::work). One child reads one
    /// file.
    Worker {
        /// The program.
        program: PathBuf,
        /// What it is told, so that it becomes a worker.
        arguments: Vec<OsString>,
    },
    /// In this process, on threads where blocking is allowed. What a parser does to the process it does: this is for
    /// files that are trusted.
    InProcess(Build),
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Worker { program, .. } => f.debug_tuple("Worker").field(program).finish(),
            Self::InProcess(_) => f.write_str("InProcess"),
        }
    }
}

/// How files are read.
#[derive(Debug, Clone)]
pub struct SandboxOptions {
    /// Where parsers run.
    pub mode: Mode,
    /// The folder of files without names, for what is on its way.
    pub spool: PathBuf,
    /// How many files are read at once.
    pub parallel: usize,
    /// How many more may wait for their turn.
    pub waiting: usize,
    /// How many workers wait for files, so that small ones cost little.
    pub spares: usize,
}

impl SandboxOptions {
    /// The defaults: as many files at once as there are processors.
    #[must_use]
    pub fn new(mode: Mode, spool: PathBuf) -> Self {
        let parallel = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Self { mode, spool, parallel, waiting: 64, spares: 2 }
    }
}

/// A file to be read.
#[derive(Debug)]
pub struct FileSource {
    /// Its name, whose extension tells what it is.
    pub file_name: String,
    /// Its media type as its sender declared it.
    pub media_type: Option<String>,
    /// Its bytes. They are read from the file's start, wherever it stands.
    pub file: File,
    /// How many they are.
    pub length: u64,
}

impl FileSource {
    /// Another of the same file.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(Self {
            file_name: self.file_name.clone(),
            media_type: self.media_type.clone(),
            file: self.file.try_clone().map_err(internal)?,
            length: self.length,
        })
    }
}

/// Reads files within limits. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: SandboxOptions,
    /// Where processes are started and watched, whoever asks.
    runtime: Handle,
    turns: Semaphore,
    /// Turns of those that may take long: fewer, so that others go on meanwhile.
    long_turns: Semaphore,
    present: AtomicUsize,
    spares: Mutex<Vec<Waiting>>,
}

impl Sandbox {
    /// A sandbox on the runtime that this is called in. Makes the spool folder unless it is there.
    ///
    /// # Errors
    /// `Internal` outside of a runtime, and where the folder cannot be made.
    pub fn new(options: SandboxOptions) -> Result<Self> {
        let runtime = Handle::try_current().map_err(internal)?;
        std::fs::create_dir_all(&options.spool).map_err(|error| {
            internal(format!("the folder {} cannot be made: {error}", options.spool.display()))
        })?;
        let turns = Semaphore::new(options.parallel.max(1));
        let long_turns = Semaphore::new(options.parallel.saturating_sub(1).max(1));
        let (present, spares) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let sandbox =
            Self { inner: Arc::new(Inner { options, runtime, turns, long_turns, present, spares }) };
        sandbox.inner.refill();
        Ok(sandbox)
    }

    /// The folder of files without names.
    #[must_use]
    pub fn spool(&self) -> &Path {
        &self.inner.options.spool
    }

    /// The text of a file, read with what `plan` asks for. A caller that goes away ends the reading.
    ///
    /// # Errors
    /// `Overloaded` where too many files wait, kinds that [are about the file](ErrorKind::is_about_the_file), and
    /// `Internal`.
    pub async fn extract(
        &self,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Extracted> {
        let inner = Arc::clone(&self.inner);
        let _place = inner.enter()?;
        let is_long = !limits.pictures.is_zero();
        // The semaphores are never closed.
        let _long = if is_long { Some(inner.long_turns.acquire().await.map_err(internal)?) } else { None };
        let _turn = inner.turns.acquire().await.map_err(internal)?;
        match &inner.options.mode {
            Mode::InProcess(build) => inner.in_process(Arc::clone(build), plan, source, limits).await,
            Mode::Worker { .. } => {
                let reading = inner.runtime.spawn(Arc::clone(&inner).in_worker(plan, source, limits));
                AbortOnDropHandle::new(reading).await?
            }
        }
    }
}

impl Inner {
    /// Takes a place among those who are read or wait.
    fn enter(&self) -> Result<Place<'_>> {
        let place = Place(&self.present);
        let before = self.present.fetch_add(1, Ordering::SeqCst);
        if before < self.options.parallel.max(1) + self.options.waiting {
            return Ok(place);
        }
        Err(Error::new(ErrorKind::Overloaded, OPERATION, format!("{before} files wait already")))
    }

    async fn in_process(
        &self,
        build: Build,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Extracted> {
        let spool = self.options.spool.clone();
        let reading = self.runtime.spawn_blocking(move || {
            let mut bytes = Vec::new();
            let mut file = source.file;
            file.rewind().map_err(internal)?;
            file.take(source.length).read_to_end(&mut bytes).map_err(internal)?;
            let parsed = build(plan)?.parse(&Source {
                bytes: &bytes,
                file_name: Some(&source.file_name),
                media_type: source.media_type.as_deref(),
                deadline: Instant::now().checked_add(limits.soft()),
            })?;
            Extracted::new(&parsed, &spool)
        });
        reading.await?
    }

    async fn in_worker(
        self: Arc<Self>,
        plan: serde_json::Value,
        source: FileSource,
        limits: Limits,
    ) -> Result<Extracted> {
        let waiting = match self.spare() {
            Some(waiting) => waiting,
            None => self.start()?,
        };
        let FileSource { file_name, media_type, file, length } = source;
        let order = Order { plan, file_name, media_type, length, limits };
        let extracted = waiting.read(&order, file).await;
        self.refill();
        extracted
    }

    /// Starts a worker.
    fn start(&self) -> Result<Waiting> {
        match &self.options.mode {
            Mode::Worker { program, arguments } => Waiting::start(program, arguments, &self.options.spool),
            Mode::InProcess(_) => Err(internal("there is no program to start")),
        }
    }

    /// A worker that waits already.
    fn spare(&self) -> Option<Waiting> {
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(mut spare) = spares.pop() {
            if spare.is_alive() {
                return Some(spare);
            }
        }
        None
    }

    /// Starts workers until as many wait as shall.
    fn refill(&self) {
        if !matches!(self.options.mode, Mode::Worker { .. }) {
            return;
        }
        let _runtime = self.runtime.enter();
        let mut spares = self.spares.lock().unwrap_or_else(PoisonError::into_inner);
        while spares.len() < self.options.spares {
            match self.start() {
                Ok(spare) => spares.push(spare),
                Err(error) => {
                    tracing::warn!(%error, "no worker could be started ahead of time");
                    return;
                }
            }
        }
    }
}

/// A place among those who are read or wait, until it goes.
struct Place<'a>(&'a AtomicUsize);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

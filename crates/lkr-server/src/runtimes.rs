//! The threads of a server.

use std::time::Duration;

use anyhow::{Context, Result};
use lkr::BackgroundRuntime;
use tokio::runtime::{Builder, Handle, Runtime};

/// How long the threads wait at their end for blocking work. It may still run after that; nothing waits for its result.
const BLOCKING_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// The runtime of ingestion, and that of everything else but requests, whose threads the HTTP server starts.
#[derive(Debug)]
pub(crate) struct Runtimes {
    main: Runtime,
    ingestion: BackgroundRuntime,
}

impl Runtimes {
    pub(crate) fn start() -> Result<Self> {
        let main = Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
        let ingestion =
            BackgroundRuntime::start("lkr-ingest").context("cannot start the threads of ingestion")?;
        Ok(Self { main, ingestion })
    }

    /// Where documents are ingested.
    pub(crate) fn ingestion(&self) -> Handle {
        self.ingestion.handle().clone()
    }

    /// Runs work on the calling thread, and its tasks on the others.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.main.block_on(work)
    }

    /// Ends all tasks, and waits for blocking work for as long as is of use.
    pub(crate) fn shutdown(self) {
        self.ingestion.shutdown_timeout(BLOCKING_GRACE_PERIOD);
        self.main.shutdown_timeout(BLOCKING_GRACE_PERIOD);
    }
}

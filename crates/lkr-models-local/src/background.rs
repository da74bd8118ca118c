//! Threads that give way to the other threads of the process.

use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

/// How much nicer these threads are. See docs/studies.md#priority-of-ingestion.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// Threads for work that nobody waits for. Where threads have no priorities of their own, they are like all others.
#[derive(Debug)]
pub(crate) struct BackgroundThreads {
    /// Only its blocking threads are used. `None` when dropped.
    runtime: Option<Runtime>,
}

impl BackgroundThreads {
    /// At most `threads` threads. They are started when needed, and end when they were idle for seconds.
    pub(crate) fn new(threads: usize) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(threads)
            .thread_name("embed-passages")
            .on_thread_start(give_way)
            .build()?;
        Ok(Self { runtime: Some(runtime) })
    }

    /// Where jobs are spawned; `None` while this is dropped.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(Runtime::handle)
    }
}

impl Drop for BackgroundThreads {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which is not allowed on threads of another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of the calling thread. Elsewhere, `nice` is about the whole process.
#[cfg(target_os = "linux")]
fn give_way() {
    if let Err(error) = rustix::process::nice(NICENESS) {
        tracing::debug!(%error, "cannot lower the priority of a thread that embeds passages");
    }
}

#[cfg(not(target_os = "linux"))]
fn give_way() {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[tokio::test]
    async fn background_threads_are_nicer_than_others() {
        let before = niceness();
        let threads = BackgroundThreads::new(2).unwrap();
        let inside = threads.handle().unwrap().spawn_blocking(niceness).await.unwrap();
        assert_eq!(inside, (before + NICENESS).min(19));
        assert_eq!((niceness(), tokio::task::spawn_blocking(niceness).await.unwrap()), (before, before));
    }
}

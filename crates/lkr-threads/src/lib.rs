#![doc = include_str!("../README.md")]

use std::{io, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};

/// How much nicer a thread that gives way is than the process. See docs/studies.md#priority-of-ingestion.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The highest niceness that Linux has.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

/// A runtime with threads of its own. They give way to the other threads of the process, except those of
/// [`of_equal_threads`](Self::of_equal_threads). Dropping it ends its tasks, and does not wait for its blocking threads.
#[derive(Debug)]
pub struct BackgroundRuntime {
    handle: Handle,
    /// `None` when dropped.
    runtime: Option<Runtime>,
}

impl BackgroundRuntime {
    /// Starts a thread for each processor, which run tasks. `name` is that of the threads, of which Linux shows 15 bytes.
    ///
    /// # Errors
    /// If the system refuses threads.
    pub fn start(name: &str) -> io::Result<Self> {
        Self::build(Builder::new_multi_thread().enable_all().thread_name(name).on_thread_start(give_way))
    }

    /// At most `threads` blocking threads and no others, so that only [`Handle::spawn_blocking`] is of use. They are started when
    /// needed, and end when they were idle for seconds.
    ///
    /// # Errors
    /// If the system refuses what a runtime needs.
    pub fn of_blocking_threads(name: &str, threads: usize) -> io::Result<Self> {
        Self::build(blocking_threads(name, threads).on_thread_start(give_way))
    }

    /// The same, of threads that give way to none. Work that a thread of another runtime waits for has a thread, even if all of that
    /// runtime's wait.
    ///
    /// # Errors
    /// If the system refuses what a runtime needs.
    pub fn of_equal_threads(name: &str, threads: usize) -> io::Result<Self> {
        Self::build(&mut blocking_threads(name, threads))
    }

    fn build(builder: &mut Builder) -> io::Result<Self> {
        let runtime = builder.build()?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Some(runtime) })
    }

    /// Ends all tasks, and waits for blocking threads for at most `timeout`.
    ///
    /// # Panics
    /// In a task of a runtime, which must not block.
    pub fn shutdown_timeout(mut self, timeout: Duration) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(timeout);
        }
    }

    /// Where tasks and jobs are spawned.
    #[must_use]
    pub const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for BackgroundRuntime {
    fn drop(&mut self) {
        // Dropping a runtime waits for its threads, which is not allowed on threads of another one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn blocking_threads(name: &str, threads: usize) -> Builder {
    let mut builder = Builder::new_current_thread();
    builder.max_blocking_threads(threads).thread_name(name);
    builder
}

/// Lowers the priority of the calling thread for as long as it runs. Threads that it starts have its priority.
#[cfg(target_os = "linux")]
pub fn give_way() {
    // On Linux, that of the process is that of its main thread. The calling thread may have a lower one already.
    let niceness = rustix::process::getpriority_process(Some(rustix::process::getpid()))
        .map(|of_process| (of_process + NICENESS).min(NICEST));
    if let Err(error) = niceness.and_then(|niceness| rustix::process::setpriority_process(None, niceness)) {
        tracing::debug!(%error, "cannot lower the priority of a thread");
    }
}

/// Does nothing: here, the priority is that of the whole process.
#[cfg(not(target_os = "linux"))]
pub fn give_way() {}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::thread;

    use super::*;

    fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    #[tokio::test]
    async fn background_threads_are_nicer_than_others() {
        let before = niceness();
        let nicer = (before + NICENESS).min(NICEST);
        let runtime = BackgroundRuntime::start("test").unwrap();
        let task = runtime
            .handle()
            .spawn(async { (niceness(), tokio::task::spawn_blocking(niceness).await.unwrap()) });
        assert_eq!(task.await.unwrap(), (nicer, nicer));
        let blocking = BackgroundRuntime::of_blocking_threads("test", 2).unwrap();
        assert_eq!(blocking.handle().spawn_blocking(niceness).await.unwrap(), nicer);
        let equal = BackgroundRuntime::of_equal_threads("test", 2).unwrap();
        assert_eq!(equal.handle().spawn_blocking(niceness).await.unwrap(), before);
        assert_eq!((niceness(), tokio::task::spawn_blocking(niceness).await.unwrap()), (before, before));
    }

    #[test]
    fn a_thread_of_a_thread_that_gives_way_gives_no_more_way() {
        let before = niceness();
        let nested = thread::spawn(|| {
            give_way();
            let inherited = thread::spawn(niceness).join().unwrap();
            let again = thread::spawn(|| {
                give_way();
                niceness()
            });
            (inherited, again.join().unwrap())
        });
        let nicer = (before + NICENESS).min(NICEST);
        assert_eq!(nested.join().unwrap(), (nicer, nicer));
    }
}

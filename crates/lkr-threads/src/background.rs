//! A runtime whose threads give way.

use std::{io, time::Duration};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::give_way;

/// A runtime with threads of its own, which give way to the other threads of the process. Dropping it ends its tasks, and does not
/// wait for its blocking threads.
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
        let mut builder = Builder::new_multi_thread();
        let runtime = builder.enable_all().thread_name(name).on_thread_start(give_way).build()?;
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

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::priority::tests::{niceness, nicer_than};

    #[tokio::test]
    async fn background_threads_are_nicer_than_others() {
        let before = niceness();
        let nicer = nicer_than(before);
        let runtime = BackgroundRuntime::start("test").unwrap();
        let task = runtime
            .handle()
            .spawn(async { (niceness(), tokio::task::spawn_blocking(niceness).await.unwrap()) });
        assert_eq!(task.await.unwrap(), (nicer, nicer));
        assert_eq!((niceness(), tokio::task::spawn_blocking(niceness).await.unwrap()), (before, before));
    }
}

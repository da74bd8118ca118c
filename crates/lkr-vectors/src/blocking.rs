//! Threads that may wait for a store.
//!
//! A store in this process reads on threads of the blocking pool, because a page that is not in memory makes the reader wait for
//! the disk. Waking such a thread and being woken by it often takes longer than the read. So work that reads several times, one
//! after another, runs as a whole on one of them, and the store then reads on the thread that asks.

use std::{
    cell::Cell,
    convert::Infallible,
    future::{Future, pending},
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::{JoinError, spawn_blocking},
};
use tracing::Span;

thread_local! {
    /// Whether the thread may wait at present.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

/// Whether the thread runs work of [`on_blocking_thread`], so that it may wait.
#[must_use]
pub fn may_block() -> bool {
    MAY_BLOCK.get()
}

/// Runs the future that `work` returns on one thread of the blocking pool, in the present span, and returns what it returned. If the
/// future of this call is dropped, that of the work is dropped at its next await, or before it begins.
///
/// While the pool is exhausted, its threads would wait for one another if such work waited for other work of the pool. So the work
/// does what needs no other thread, or asks [`may_block`] first.
///
/// # Errors
/// If the work panics, or the runtime ends before it begins.
///
/// # Panics
/// Outside of a runtime.
pub async fn on_blocking_thread<T, F>(work: impl FnOnce() -> F + Send + 'static) -> Result<T, JoinError>
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    let (runtime, span) = (Handle::current(), Span::current());
    let (waiting, abandoned) = oneshot::channel::<Infallible>();
    let on_thread = move || {
        let _in_span = span.entered();
        let _marked = Marked::new();
        runtime.block_on(async {
            tokio::select! {
                biased;
                _ = abandoned => None,
                done = async { work().await } => Some(done),
            }
        })
    };
    let done = spawn_blocking(on_thread).await?;
    drop(waiting);
    match done {
        Some(done) => Ok(done),
        // Work is abandoned only while `waiting` is dropped, with this future.
        None => pending().await,
    }
}

/// The thread may block until this is dropped.
struct Marked;

impl Marked {
    fn new() -> Self {
        MAY_BLOCK.set(true);
        Self
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        MAY_BLOCK.set(false);
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, sync::mpsc};

    use super::*;

    #[tokio::test]
    async fn only_the_thread_of_the_work_may_block() {
        assert!(!may_block());
        let within = on_blocking_thread(|| async {
            let other = spawn_blocking(may_block).await.unwrap();
            (may_block(), other)
        });
        assert_eq!(within.await.unwrap(), (true, false));
        assert!(!may_block());
    }

    #[tokio::test]
    async fn abandoned_work_ends_at_its_next_await() {
        let (began, has_begun) = oneshot::channel();
        let (alive, ended) = oneshot::channel::<()>();
        let work = on_blocking_thread(move || async move {
            let _alive = alive;
            began.send(()).unwrap();
            pending::<()>().await;
        });
        tokio::select! {
            _ = work => panic!("the work ended"),
            begun = has_begun => begun.unwrap(),
        }
        ended.await.unwrap_err();
    }

    #[test]
    fn abandoned_work_that_has_not_begun_does_not_begin() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.max_blocking_threads(1).build().unwrap().block_on(async {
            let (free, wait) = mpsc::channel::<()>();
            let (began, has_begun) = mpsc::channel();
            let occupied = spawn_blocking(move || wait.recv());
            tokio::select! {
                biased;
                _ = on_blocking_thread(move || async move { began.send(()).unwrap() }) => panic!("it ended"),
                () = ready(()) => {}
            }
            free.send(()).unwrap();
            occupied.await.unwrap().unwrap();
            spawn_blocking(|| ()).await.unwrap();
            has_begun.recv().unwrap_err();
        });
    }

    #[test]
    fn thread_may_not_block_after_its_work_even_if_that_panicked() {
        // All work is done by the same thread of the pool.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.max_blocking_threads(1).build().unwrap().block_on(async {
            on_blocking_thread(|| async {}).await.unwrap();
            assert!(!spawn_blocking(may_block).await.unwrap());
            let panicked = on_blocking_thread(|| async { panic!("on purpose") });
            assert!(panicked.await.unwrap_err().is_panic());
            assert!(!spawn_blocking(may_block).await.unwrap());
        });
    }
}

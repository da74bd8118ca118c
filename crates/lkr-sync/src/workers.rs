//! Threads that work on numbered items, a bounded number of them at a time.

use std::{
    panic,
    sync::{
        Condvar, Mutex, MutexGuard, PoisonError,
        mpsc::{self, Receiver},
    },
    thread,
};

/// Which item is next, and how many are open: taken and not released.
#[derive(Debug)]
pub(crate) struct Window {
    items: usize,
    limit: usize,
    state: Mutex<WindowState>,
    released: Condvar,
}

#[derive(Debug, Default)]
struct WindowState {
    next: usize,
    open: usize,
    is_stopped: bool,
}

impl Window {
    /// At most `limit` of the items are open at a time.
    pub(crate) fn new(items: usize, limit: usize) -> Self {
        Self { items, limit: limit.max(1), state: Mutex::default(), released: Condvar::new() }
    }

    /// Waits until an item may be taken; `None` when there are no more.
    fn take(&self) -> Option<usize> {
        let must_wait = |state: &mut WindowState| {
            !state.is_stopped && state.next < self.items && state.open >= self.limit
        };
        let state = self.released.wait_while(self.state(), must_wait);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.is_stopped || state.next == self.items {
            return None;
        }
        state.open += 1;
        state.next += 1;
        if state.next == self.items {
            self.released.notify_all();
        }
        Some(state.next - 1)
    }

    /// Lets another item be taken for one that is finished.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.open = state.open.saturating_sub(1);
        drop(state);
        self.released.notify_one();
    }

    fn stop(&self) {
        self.state().is_stopped = true;
        self.released.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the threads also if the thread that coordinates them returns early or panics.
struct StopOnDrop<'a>(&'a Window);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `work` on all items, while `coordinate` receives the results. The threads end after their current item when
/// `coordinate` returns.
pub(crate) fn run<R: Send, T>(
    window: &Window,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    coordinate: impl FnOnce(&Receiver<(usize, R)>) -> T,
) -> T {
    let (sender, receiver) = mpsc::channel();
    let work = &work;
    thread::scope(|scope| {
        let stop = StopOnDrop(window);
        let spawn = |_| {
            let sender = sender.clone();
            scope.spawn(move || {
                while let Some(item) = window.take() {
                    if sender.send((item, work(item))).is_err() {
                        return;
                    }
                }
            })
        };
        let spawned: Vec<_> = (0..threads.clamp(1, window.items.max(1))).map(spawn).collect();
        drop(sender);
        let result = coordinate(&receiver);
        drop(stop);
        for thread in spawned {
            // A panic of a thread is a panic of the caller, as if it had done the work itself.
            thread.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn each_item_is_worked_on_once() {
        let window = Window::new(100, 7);
        let mut results = run(
            &window,
            4,
            |item| item * 2,
            |results| results.iter().inspect(|_| window.release()).collect::<Vec<_>>(),
        );
        results.sort_unstable();
        assert_eq!(results, (0..100).map(|item| (item, item * 2)).collect::<Vec<_>>());
    }

    #[test]
    fn no_more_items_are_open_than_the_window_allows() {
        let (window, taken) = (Window::new(50, 3), AtomicUsize::new(0));
        let work = |_| taken.fetch_add(1, Ordering::SeqCst);
        run(&window, 8, work, |results| {
            for finished in 0..50 {
                results.recv().unwrap();
                assert!(taken.load(Ordering::SeqCst) <= finished + 3);
                window.release();
            }
        });
    }

    #[test]
    fn threads_that_wait_for_the_window_end_with_the_last_item() {
        let window = Window::new(10, 2);
        let count =
            run(&window, 8, |item| item, |results| results.iter().inspect(|_| window.release()).count());
        assert_eq!(count, 10);
    }

    #[test]
    fn return_of_the_coordinator_ends_the_threads() {
        let window = Window::new(1_000_000, 2);
        run(&window, 2, |item| item, |results| results.recv().unwrap());
        assert!(window.state().next <= 4);
    }
}

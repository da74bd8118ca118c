//! The processors on which a thread may run.

#[cfg(target_os = "linux")]
pub(crate) use linux::Placement;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::Placement;

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    /// Where a thread is woken.
    pub(crate) struct Placement {
        thread: Pid,
        /// Where the thread may run otherwise, while it is kept from a processor.
        otherwise: Mutex<Option<CpuSet>>,
    }

    impl Placement {
        pub(crate) fn of_this_thread() -> Self {
            Self { thread: gettid(), otherwise: Mutex::default() }
        }

        /// Keeps the thread, which sleeps, from the calling thread's processor, if it may run on another one.
        pub(crate) fn keep_from_this_processor(&self) {
            let mut otherwise = self.otherwise();
            // It may have been kept from another one since it ran last. Where the system refuses, the thread runs anywhere.
            let before = otherwise.map_or_else(|| sched_getaffinity(Some(self.thread)), Ok);
            let Ok(before) = before else { return };
            let (mut others, processor) = (before, sched_getcpu());
            if processor < CpuSet::MAX_CPU {
                others.unset(processor);
            }
            if others.count() > 0 && sched_setaffinity(Some(self.thread), &others).is_ok() {
                *otherwise = Some(before);
            }
        }

        /// Lets the thread, which is the calling one, run where it could before.
        pub(crate) fn restore(&self) {
            if let Some(before) = self.otherwise().take() {
                // If the system refuses now, it runs on all but one processor.
                let _ = sched_setaffinity(None, &before);
            }
        }

        fn otherwise(&self) -> MutexGuard<'_, Option<CpuSet>> {
            self.otherwise.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    /// Nothing: here, threads cannot be kept from processors.
    pub(crate) struct Placement;

    impl Placement {
        pub(crate) fn of_this_thread() -> Self {
            Self
        }

        pub(crate) fn keep_from_this_processor(&self) {}

        pub(crate) fn restore(&self) {}
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::{
        sync::{Arc, mpsc},
        thread,
    };

    use rustix::thread::{CpuSet, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

    use super::*;

    #[test]
    fn thread_is_kept_from_the_processor_that_wakes_it_until_it_runs() {
        let (placements, placement) = mpsc::channel();
        let (wake, woken) = mpsc::channel::<()>();
        let before = sched_getaffinity(None).unwrap();
        let sleeping = thread::spawn(move || {
            let placement = Arc::new(Placement::of_this_thread());
            placements.send((Arc::clone(&placement), gettid())).unwrap();
            woken.recv().unwrap();
            let kept = sched_getaffinity(None).unwrap();
            placement.restore();
            (kept, sched_getaffinity(None).unwrap())
        });
        let (placement, thread) = placement.recv().unwrap();
        // This thread stays where it is.
        let here = sched_getcpu();
        let mut only = CpuSet::new();
        only.set(here);
        sched_setaffinity(None, &only).unwrap();
        placement.keep_from_this_processor();
        assert_eq!(sched_getaffinity(Some(thread)).unwrap().is_set(here), before.count() == 1);
        wake.send(()).unwrap();
        let (kept, after) = sleeping.join().unwrap();
        assert_eq!(kept.is_set(here), before.count() == 1);
        assert!(after == before);
    }
}

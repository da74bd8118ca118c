//! The priority of threads.

/// How much nicer a thread that gives way is than the process. See docs/studies.md#priority-of-ingestion.
#[cfg(target_os = "linux")]
const NICENESS: i32 = 10;

/// The highest niceness that Linux has.
#[cfg(target_os = "linux")]
const NICEST: i32 = 19;

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
pub(crate) mod tests {
    use std::thread;

    use super::*;

    /// The niceness of the calling thread.
    pub(crate) fn niceness() -> i32 {
        rustix::process::getpriority_process(None).unwrap()
    }

    /// That of a thread that gives way, in a process of this niceness.
    pub(crate) fn nicer_than(niceness: i32) -> i32 {
        (niceness + NICENESS).min(NICEST)
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
        let nicer = nicer_than(before);
        assert_eq!(nested.join().unwrap(), (nicer, nicer));
    }
}

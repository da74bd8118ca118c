//! Limits that a worker sets for itself before it reads a file.

use std::{thread, time::Duration};

use rustix::process::{Resource, Rlimit, Signal, getppid, kill_current_process_group, nice, setrlimit};

use crate::Limits;

/// How much lower the priority of a worker is than that of the process that started it.
/// See docs/studies.md#priority-of-ingestion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Niceness {
    /// Of a worker whose answer a person waits for: slightly lower.
    Viewer = 2,
    /// Of a worker that extracts a file: searches come first.
    Extractor = 10,
}

/// Sets the limits of this process irrevocably. Limits that the system does not support are enforced only by the parent.
pub(crate) fn set_limits(limits: &Limits, niceness: Niceness) {
    let _ = nice(niceness as i32);
    // Counts allocated memory, not the shared pages of programs and libraries.
    limit(Resource::Data, limits.resident);
    limit(Resource::As, limits.address_space);
    limit(Resource::Cpu, limits.hard().as_secs() + 1);
    limit(Resource::Fsize, limits.output);
    limit(Resource::Nofile, limits.files);
    limit(Resource::Core, 0);
}

fn limit(resource: Resource, value: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
}

/// Makes the memory of this process unreadable for other processes of the same user. It leaves no core file, and only root can
/// debug it. Returns whether the system supports it.
///
/// For a server whose workers run as its own user: it does not depend on what confines the workers.
#[cfg(target_os = "linux")]
pub fn hide_process_memory() -> bool {
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).is_ok()
}

/// Does nothing, because the system does not support it.
#[cfg(not(target_os = "linux"))]
pub fn hide_process_memory() -> bool {
    false
}

/// Closes every inherited file except the standard streams: a parser must not reach files of its parent.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn close_inherited_files() {
    const FIRST: libc::c_long = 3;
    #[expect(unsafe_code, reason = "the system's own interface")]
    // SAFETY: this is the first action of the process, so no code of this process owns a file that the call closes. A
    // kernel without the call changes nothing.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_long::from(i32::MAX), 0);
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn close_inherited_files() {}

/// How often a worker checks that its parent is running. Chosen, not measured.
const PARENT_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Ends this process and every process that it started soon after its parent has ended.
pub(crate) fn exit_with_parent() {
    let parent = getppid();
    let watch = move || {
        while getppid() == parent {
            thread::sleep(PARENT_POLL_INTERVAL);
        }
        let _ = kill_current_process_group(Signal::KILL);
        std::process::exit(1);
    };
    // If the thread cannot be started, the limit of processor time ends the process.
    let _ = thread::Builder::new().stack_size(64 * 1024).spawn(watch);
}

//! Restrictions that a worker applies to itself before it reads a file.

use std::{thread, time::Duration};

use rustix::process::{Resource, Rlimit, Signal, getppid, kill_current_process_group, nice, setrlimit};

use crate::Limits;

/// A slightly lower priority than that of searches. Not lower, because a worker's time limit counts wall-clock time and
/// it competes with ingestion. Chosen, not measured.
const NICENESS: i32 = 2;

/// Sets the limits of this process irrevocably and denies it network access. Limits that the system does not support
/// are enforced only by the parent.
pub(crate) fn confine(limits: &Limits) {
    let _ = nice(NICENESS);
    // Counts allocated memory, not the shared pages of programs and libraries.
    limit(Resource::Data, limits.resident);
    limit(Resource::As, limits.address_space);
    limit(Resource::Cpu, limits.hard().as_secs() + 1);
    limit(Resource::Fsize, limits.output);
    limit(Resource::Nofile, limits.files);
    limit(Resource::Core, 0);
    deny_system_calls();
}

fn limit(resource: Resource, value: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
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

/// Denies system calls that give access to networks, to the memory of other processes or to other privileges. Applies
/// to this process and every process that it starts.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn deny_system_calls() {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    const DENIED: [libc::c_long; 13] = [
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_mount,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_bpf,
        libc::SYS_keyctl,
        libc::SYS_io_uring_setup,
    ];
    let Ok(arch) = std::env::consts::ARCH.try_into() else { return };
    let rules: BTreeMap<_, _> = DENIED.into_iter().map(|call| (call, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    if let Some(program) = filter.ok().and_then(|filter| BpfProgram::try_from(filter).ok()) {
        let _ = seccompiler::apply_filter_all_threads(&program);
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn deny_system_calls() {}

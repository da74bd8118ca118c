//! What a worker gives up before it looks at a file.

use std::{thread, time::Duration};

use rustix::process::{Resource, Rlimit, Signal, getppid, kill_current_process_group, nice, setrlimit};

use crate::Limits;

/// How far a worker stands back behind whoever answers searches: a little, since its time is counted by the clock and
/// it must come to its work beside ingestion too.
const NICENESS: i32 = 2;

/// Sets the limits of this process for good, and cuts it off from networks. Every limit that the system does not know
/// is left to whoever watches from outside.
pub(crate) fn confine(limits: &Limits) {
    let _ = nice(NICENESS);
    // What is allocated counts; pages of programs and libraries, which others share, do not.
    limit(Resource::Data, limits.resident);
    limit(Resource::As, limits.address_space);
    limit(Resource::Cpu, limits.hard().as_secs() + 1);
    limit(Resource::Fsize, limits.output);
    limit(Resource::Nofile, limits.files);
    limit(Resource::Core, 0);
    no_network();
}

fn limit(resource: Resource, most: u64) {
    let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
}

/// Closes every file but the standard ones: what the parent had open is nothing to a parser.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn close_others() {
    const FIRST: libc::c_long = 3;
    #[expect(unsafe_code, reason = "the system's own interface")]
    // SAFETY: this is the first that the process does; nothing here has opened a file that the call could take away.
    // Where the kernel does not know it, nothing changes.
    unsafe {
        libc::syscall(libc::SYS_close_range, FIRST, libc::c_long::from(i32::MAX), 0);
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn close_others() {}

/// How often a worker looks whether its parent is still there.
const LOOK: Duration = Duration::from_millis(500);

/// Ends this process, and what it started, soon after its parent has ended: nobody waits for it any more.
pub(crate) fn end_with_parent() {
    let parent = getppid();
    let watch = move || {
        while getppid() == parent {
            thread::sleep(LOOK);
        }
        let _ = kill_current_process_group(Signal::KILL);
        std::process::exit(1);
    };
    // Without the thread, the limit on time ends it.
    let _ = thread::Builder::new().stack_size(64 * 1024).spawn(watch);
}

/// Makes every call fail that leads to a network, to another process's memory or to other rights, for this process
/// and those that it starts.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn no_network() {
    use std::collections::BTreeMap;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    const REFUSED: [libc::c_long; 13] = [
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
    let rules: BTreeMap<_, _> = REFUSED.into_iter().map(|call| (call, Vec::new())).collect();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, denied, arch);
    if let Some(program) = filter.ok().and_then(|filter| BpfProgram::try_from(filter).ok()) {
        let _ = seccompiler::apply_filter_all_threads(&program);
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn no_network() {}

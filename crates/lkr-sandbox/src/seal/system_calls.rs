//! The filter of system calls (seccomp).

use std::collections::BTreeMap;

use rustix::process::getpid;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};

use super::Access;

mod denied;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Denies the system calls that the process does not need. Applies to all its threads and every process that it starts.
/// `signals_are_scoped` says that Landlock keeps signals inside the sandbox.
pub(super) fn deny(access: Access<'_>, signals_are_scoped: bool) -> Result<(), Error> {
    for program in programs(access, signals_are_scoped)? {
        seccompiler::apply_filter_all_threads(&program)?;
    }
    Ok(())
}

fn programs(access: Access<'_>, signals_are_scoped: bool) -> Result<[BpfProgram; 3], Error> {
    let mut rules = Rules::new();
    deny_always(&mut rules, denied::IN_EVERY_PROCESS);
    limit_to_own_process(&mut rules)?;
    deny_namespaces(&mut rules)?;
    match access {
        Access::Nothing => {
            deny_always(&mut rules, denied::WITHOUT_FILES);
            deny_always(&mut rules, denied::WITHOUT_FILES_ON_X86);
            // A new process; threads are allowed.
            deny_if(&mut rules, libc::SYS_clone, &[has_no_flag(libc::CLONE_THREAD)?])?;
            deny_if(&mut rules, libc::SYS_kill, &own_process_conditions()?)?;
        }
        // Ends programs that take too long. The scope limits it to them.
        Access::Programs(_) if signals_are_scoped => {}
        Access::Programs(_) => deny_if(&mut rules, libc::SYS_kill, &own_process_conditions()?)?,
    }
    // The arguments of this call are in memory, where a filter cannot read them. Without the call, libraries use `clone`.
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([program(rules, libc::EPERM)?, program(clone3, libc::ENOSYS)?, deny_x32()])
}

fn program(rules: Rules, error: i32) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let denied = SeccompAction::Errno(error.unsigned_abs());
    SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?.try_into()
}

fn deny_always(rules: &mut Rules, calls: &[libc::c_long]) {
    rules.extend(calls.iter().map(|call| (*call, Vec::new())));
}

/// Denies a call if all conditions are met, in addition to other rules for it.
fn deny_if(
    rules: &mut Rules,
    call: libc::c_long,
    conditions: &[SeccompCondition],
) -> Result<(), BackendError> {
    rules.entry(call).or_default().push(SeccompRule::new(conditions.to_vec())?);
    Ok(())
}

/// Calls that name a process may name only this one.
fn limit_to_own_process(rules: &mut Rules) -> Result<(), BackendError> {
    /// Commands of `fcntl` that have signals sent to a process.
    const SIGNAL_COMMANDS: [u64; 3] = [8, 10, 15];
    deny_if(rules, libc::SYS_tgkill, &[first_is_not(own_id())?])?;
    deny_if(rules, libc::SYS_prlimit64, &own_process_conditions()?)?;
    for command in SIGNAL_COMMANDS {
        let is_command = SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, command)?;
        deny_if(rules, libc::SYS_fcntl, &[is_command])?;
    }
    Ok(())
}

/// The first argument is neither this process nor 0, which stands for this process or its group. Processes cannot change
/// their group.
fn own_process_conditions() -> Result<[SeccompCondition; 2], BackendError> {
    Ok([first_is_not(0)?, first_is_not(own_id())?])
}

fn own_id() -> u64 {
    u64::from(getpid().as_raw_nonzero().get().unsigned_abs())
}

fn first_is_not(value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn deny_namespaces(rules: &mut Rules) -> Result<(), BackendError> {
    const FLAGS: [libc::c_int; 7] = [
        libc::CLONE_NEWCGROUP,
        libc::CLONE_NEWIPC,
        libc::CLONE_NEWNET,
        libc::CLONE_NEWNS,
        libc::CLONE_NEWPID,
        libc::CLONE_NEWUSER,
        libc::CLONE_NEWUTS,
    ];
    for flag in FLAGS.map(bits) {
        let has_flag = SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?;
        deny_if(rules, libc::SYS_clone, &[has_flag])?;
    }
    Ok(())
}

fn has_no_flag(flag: libc::c_int) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(bits(flag)), 0)
}

fn bits(flag: libc::c_int) -> u64 {
    u64::from(flag.cast_unsigned())
}

/// Denies the interface x32, which numbers the same calls differently: by the bit that all its numbers have. A program
/// written out, because `seccompiler` compares numbers only one by one, and a filter of twice the length takes twice the
/// time to install.
fn deny_x32() -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_GREATER_OR_EQUAL: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let instruction = |code, jf, k| sock_filter { code, jt: 0, jf, k };
    vec![
        instruction(LOAD_NUMBER, 0, 0),
        instruction(JUMP_IF_GREATER_OR_EQUAL, 1, X32),
        instruction(RETURN, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        instruction(RETURN, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

#[cfg(test)]
mod tests {
    use std::{fs, io, thread};

    use super::*;

    /// A harmless call; without the filter it is unknown or answered.
    fn getppid_through_x32() -> io::Error {
        #[expect(unsafe_code, reason = "libraries do not use this interface")]
        // SAFETY: the call has no arguments.
        let _ = unsafe { libc::syscall(libc::SYS_getppid | 0x4000_0000) };
        io::Error::last_os_error()
    }

    #[test]
    fn filter_alone_denies_files_programs_and_processes() {
        let attempts = || {
            for program in programs(Access::Nothing, false).unwrap() {
                seccompiler::apply_filter(&program).unwrap();
            }
            let results = [
                fs::read("/etc/passwd").err(),
                fs::read_dir("/").err(),
                fs::create_dir("/tmp/lkr-filter-test").err(),
                std::process::Command::new("/bin/true").status().err(),
                rustix::process::test_kill_process(rustix::process::Pid::INIT).err().map(io::Error::from),
                std::net::TcpListener::bind("127.0.0.1:0").err(),
            ];
            let kinds = results.map(|error| error.map(|error| error.kind()));
            assert_eq!(kinds, [Some(io::ErrorKind::PermissionDenied); 6]);
            assert_eq!(getppid_through_x32().kind(), io::ErrorKind::PermissionDenied);
            assert!(thread::spawn(|| true).join().unwrap(), "threads can still be started");
        };
        thread::spawn(attempts).join().unwrap();
    }
}

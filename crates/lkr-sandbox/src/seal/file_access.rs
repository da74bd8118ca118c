//! Landlock: which files a process may open.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr as _,
    RulesetCreatedAttr as _, RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use super::Access;

/// The newest version whose rights are denied. Older kernels deny those that they know. Version 6 (Linux 6.12) is the
/// first that denies signals.
const VERSION: ABI = ABI::V6;

/// What Landlock enforces on this thread and the threads and processes that it starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Restricted {
    /// Files and folders cannot be opened.
    pub(super) files: bool,
    /// Signals and abstract sockets end at the sandbox.
    pub(super) scope: bool,
}

/// Denies every right to files, except to the files of programs that the process may start.
pub(super) fn restrict(access: Access<'_>) -> Restricted {
    try_restrict(access).unwrap_or_default()
}

fn try_restrict(access: Access<'_>) -> Result<Restricted, RulesetError> {
    let mut ruleset = Ruleset::default()
        .handle_access(AccessFs::from_all(VERSION))?
        .handle_access(AccessNet::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?
        .create()?;
    if let Access::Programs(files) = access {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        ruleset = ruleset
            .add_rules(path_beneath_rules(&files.readable, read))?
            .add_rules(path_beneath_rules(&files.executable, AccessFs::Execute | AccessFs::ReadFile))?
            .add_rules(path_beneath_rules(["/dev/null"], AccessFs::ReadFile | AccessFs::WriteFile))?;
    }
    let status = ruleset.restrict_self()?;
    let files = status.ruleset != RulesetStatus::NotEnforced;
    let LandlockStatus::Available { effective_abi, .. } = status.landlock else {
        return Ok(Restricted::default());
    };
    Ok(Restricted { files, scope: files && effective_abi >= ABI::V6 })
}

#[cfg(test)]
mod tests {
    use std::{fs, io, thread};

    use super::*;
    use crate::ProgramFiles;

    fn errors_in_thread(access: Access<'_>) -> (Restricted, Vec<Option<io::ErrorKind>>) {
        thread::scope(|scope| {
            let attempts = || {
                let restricted = restrict(access);
                let kinds = [
                    fs::read("/etc/passwd").err(),
                    fs::read_dir("/").err(),
                    fs::write(std::env::temp_dir().join("lkr-landlock-test"), "x").err(),
                    std::process::Command::new("/bin/true").status().err(),
                ];
                (restricted, kinds.map(|error| error.map(|error| error.kind())).to_vec())
            };
            scope.spawn(attempts).join().unwrap()
        })
    }

    #[test]
    fn landlock_alone_denies_files_and_programs() {
        let denied = Some(io::ErrorKind::PermissionDenied);
        let (restricted, kinds) = errors_in_thread(Access::Nothing);
        if !restricted.files {
            return lkr_test_support::skip("the kernel has no Landlock");
        }
        assert_eq!(kinds, [denied; 4]);
        let files = ProgramFiles {
            readable: vec!["/etc/passwd".into(), "/no/such/file".into()],
            ..ProgramFiles::default()
        };
        let (_, kinds) = errors_in_thread(Access::Programs(&files));
        assert_eq!(kinds, [None, denied, denied, denied]);
    }
}

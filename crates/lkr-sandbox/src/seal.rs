//! Takes files, programs and other processes away from a worker, in layers: each that the system supports is applied.

use std::path::PathBuf;

use crate::Confinement;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod empty_root;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod file_access;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod system_calls;

/// The files and folders that a program needs. Those that do not exist are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// Files, and folders with everything in them, that may be read.
    pub readable: Vec<PathBuf>,
    /// Programs that may be started, and the loaders that start them.
    pub executable: Vec<PathBuf>,
}

/// What a process may still reach after it was sealed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Access<'a> {
    /// Only what it has open.
    Nothing,
    /// The files of programs that it starts.
    Programs(&'a ProgramFiles),
}

/// Seals this process irrevocably, and everything that it starts later. Must run before the process has other threads,
/// because Landlock applies to the calling thread and the threads that it starts.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(crate) fn seal(access: Access<'_>) -> Confinement {
    use rustix::{process, thread};

    use crate::Layer;

    let mut layers = Vec::new();
    let mut add = |layer, is_enforced: bool| {
        if is_enforced {
            layers.push(layer);
        }
        is_enforced
    };
    add(Layer::NoNewPrivileges, thread::set_no_new_privs(true).is_ok());
    add(Layer::NotDumpable, process::set_dumpable_behavior(process::DumpableBehavior::NotDumpable).is_ok());
    let restricted = file_access::restrict(access);
    let is_scoped = add(Layer::LandlockScope, restricted.scope);
    if !add(Layer::Landlock, restricted.files) && matches!(access, Access::Nothing) {
        add(Layer::EmptyRoot, empty_root::enter().is_ok());
    }
    let empty = thread::CapabilitySet::empty();
    let none = thread::CapabilitySets { effective: empty, permitted: empty, inheritable: empty };
    add(Layer::NoCapabilities, thread::set_capabilities(None, none).is_ok());
    add(Layer::SystemCallFilter, system_calls::deny(access, is_scoped).is_ok());
    Confinement { layers }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(crate) fn seal(_: Access<'_>) -> Confinement {
    Confinement::default()
}

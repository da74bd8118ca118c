//! Processes whose time of day is set. A small library (`clock.c`) shows it to them; the clock of the machine is never set.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use lkr_test_support::skip;

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/history/clock.c");

/// The largest distance from the real time in seconds. Between the two ends lie less than the two minutes for which Redis keeps
/// the answer of a step after its deadline.
pub(crate) const FARTHEST: i64 = 55;

/// The clock of some processes.
pub(crate) struct Clock {
    library: PathBuf,
    offset: PathBuf,
}

impl Clock {
    /// A clock that shows the real time. `None` with a visible skip if the library cannot be built.
    pub(crate) fn new(folder: &Path, name: &str) -> Option<Self> {
        let clock = Self { library: folder.join("clock.so"), offset: folder.join(format!("{name}.offset")) };
        if !clock.library.exists() {
            let mut compile = Command::new("cc");
            compile.args(["-shared", "-fPIC", "-O1", "-o"]).args([&clock.library, Path::new(SOURCE)]);
            if !cfg!(target_os = "linux") || !compile.status().is_ok_and(|status| status.success()) {
                skip("clocks of processes cannot be set: that needs Linux and the C compiler cc");
                return None;
            }
        }
        clock.set(0);
        Some(clock)
    }

    /// Sets the clock to so many seconds from the real time.
    pub(crate) fn set(&self, seconds: i64) {
        // In place, because the processes have mapped the file.
        let file =
            fs::OpenOptions::new().create(true).truncate(false).write(true).open(&self.offset).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &seconds.to_ne_bytes(), 0).unwrap();
    }

    /// The variables of a process with this clock.
    pub(crate) fn environment(&self) -> Vec<(String, OsString)> {
        vec![
            ("LD_PRELOAD".to_owned(), self.library.clone().into()),
            ("LKR_CLOCK_OFFSET".to_owned(), self.offset.clone().into()),
        ]
    }
}

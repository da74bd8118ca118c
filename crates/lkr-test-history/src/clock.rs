//! Processes whose time of day is set. A small library (`clock.c`) shows it to them; the clock of the machine is never set.

use std::{
    ffi::OsString,
    fs::OpenOptions,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
};

const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/clock.c");

/// The clock of some processes.
#[derive(Debug, Clone)]
pub struct Clock {
    library: PathBuf,
    offset: PathBuf,
}

impl Clock {
    /// A clock that shows the real time, with its files in `folder`, where the library is built if it is missing.
    ///
    /// # Errors
    /// If the library cannot be built: that needs Linux and the C compiler `cc`.
    pub fn new(folder: &Path, name: &str) -> io::Result<Self> {
        let clock = Self { library: folder.join("clock.so"), offset: folder.join(format!("{name}.offset")) };
        if !clock.library.exists() {
            let mut compile = Command::new("cc");
            compile.args(["-shared", "-fPIC", "-O1", "-o"]).args([&clock.library, Path::new(SOURCE)]);
            if !cfg!(target_os = "linux") || !compile.status()?.success() {
                return Err(io::Error::other("clocks of processes need Linux and the C compiler cc"));
            }
        }
        clock.set(0)?;
        Ok(clock)
    }

    /// Sets the clock to so many seconds from the real time.
    ///
    /// # Errors
    /// If its file cannot be written.
    pub fn set(&self, seconds: i64) -> io::Result<()> {
        // In place, because the processes have mapped the file.
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&self.offset)?;
        file.write_all_at(&seconds.to_ne_bytes(), 0)
    }

    /// The variables of a process with this clock.
    #[must_use]
    pub fn environment(&self) -> Vec<(String, OsString)> {
        vec![
            ("LD_PRELOAD".to_owned(), self.library.clone().into()),
            ("CLOCK_OFFSET_FILE".to_owned(), self.offset.clone().into()),
        ]
    }
}

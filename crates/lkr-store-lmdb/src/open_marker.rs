//! Detects an unclean shutdown. LMDB survives a killed process, but it follows damaged page numbers wherever they
//! lead, which can end the process at every start. So after an unclean shutdown the pages are checked before LMDB
//! reads them.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use crate::{
    env::DATA,
    error::{Error, Result},
    open_files::OpenFile,
    page_check,
};

/// The marker file: one byte for each time that the store was opened since it was last closed.
const OPENED: &str = "opened";

/// Up to this size the pages are checked after every unclean shutdown, which takes about a second; above it, after
/// every [`CHECK_LARGE_EVERY`]th.
const ALWAYS_CHECK_BELOW: u64 = 1 << 30;
const CHECK_LARGE_EVERY: u64 = 3;

/// Marks the store as open until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenMarker {
    /// `None` if it could not be written.
    mark: Option<OpenFile>,
}

impl OpenMarker {
    /// Marks the store in `dir` as open. If it was not closed, checks its pages first.
    pub(crate) fn begin(dir: &Path) -> Result<Self> {
        let (mark, data) = (dir.join(OPENED), dir.join("kb").join(DATA));
        let (unclosed, size) = (length(&mark), length(&data));
        if unclosed > 0 && (size <= ALWAYS_CHECK_BELOW || unclosed.is_multiple_of(CHECK_LARGE_EVERY)) {
            refuse_damaged_pages(&data)?;
        }
        // A full disk must not prevent reading, so this failure is only logged.
        if let Err(error) = add_byte(&mark) {
            tracing::debug!(path = %mark.display(), %error, "open marker could not be written");
        }
        Ok(Self { mark: OpenFile::at(mark).ok() })
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        // What is at the path of a folder that was moved is not this store's.
        let Some(mark) = self.mark.take().filter(OpenFile::is_in_place) else { return };
        if let Err(error) = fs::remove_file(mark.path()) {
            tracing::debug!(path = %mark.path().display(), %error, "open marker could not be removed");
        }
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn add_byte(path: &Path) -> io::Result<()> {
    File::options().create(true).append(true).open(path)?.write_all(b".")
}

fn refuse_damaged_pages(data: &Path) -> Result<()> {
    let damage = page_check::check(data).map_err(|error| Error::io("read pages", error))?;
    match damage.first() {
        None => Ok(()),
        Some(first) => Err(Error::corrupt_store(&format!("{}: {first}", data.display()))),
    }
}

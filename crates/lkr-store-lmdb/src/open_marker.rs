//! Whether the process that had a store last closed it. LMDB outlasts being killed, but it follows what it reads off
//! its pages wherever that leads, and where their bytes have changed that may be the end of the process, at each start
//! anew. So the pages are looked at first where a process came to its end without closing.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use crate::{
    error::{Error, Result},
    page_check,
    store_check::DATA,
};

/// The file that tells: a byte for each time that the store was opened since it was last closed.
const OPENED: &str = "opened";

/// Up to this size the pages are looked at after each such end, which takes about a second; beyond, after every
/// [`LARGE`]th.
const SMALL_BYTES: u64 = 1 << 30;
const LARGE: u64 = 3;

/// A store that is open. Dropped when everything of it is closed.
#[derive(Debug)]
pub(crate) struct OpenMarker {
    mark: PathBuf,
}

impl OpenMarker {
    /// Marks the store in `dir` as open, and looks at its pages before where it was not closed.
    pub(crate) fn begin(dir: &Path) -> Result<Self> {
        let (mark, data) = (dir.join(OPENED), dir.join("kb").join(DATA));
        let (unclosed, size) = (length(&mark), length(&data));
        if unclosed > 0 && (size <= SMALL_BYTES || unclosed.is_multiple_of(LARGE)) {
            refuse_damaged(&data)?;
        }
        // Without room for it nothing is lost: it keeps nobody from reading.
        if let Err(error) = add_byte(&mark) {
            tracing::debug!(path = %mark.display(), %error, "not marked as open");
        }
        Ok(Self { mark })
    }
}

impl Drop for OpenMarker {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.mark) {
            tracing::debug!(path = %self.mark.display(), %error, "not marked as closed");
        }
    }
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

fn add_byte(path: &Path) -> io::Result<()> {
    File::options().create(true).append(true).open(path)?.write_all(b".")
}

fn refuse_damaged(data: &Path) -> Result<()> {
    let damage = page_check::check(data).map_err(|error| Error::io("read pages", error))?;
    match damage.first() {
        None => Ok(()),
        Some(first) => Err(Error::corrupt_store(&format!("{}: {first}", data.display()))),
    }
}

//! The journal: what was acknowledged while the remote store was away.
//!
//! A file of frames, after a header that names its format. A frame is the length of its text and the CRC-32C of it, both
//! as four bytes with the lowest first, and the text: a step, or a note that a step was merged. Each step is synced before
//! it is acknowledged. A kill can cut the last frame off; damage before the last frame is an error.

mod entry;
mod frames;

use std::{
    collections::{HashMap, VecDeque},
    fs::{self, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write as _},
    path::Path,
};

use lkr_state::{Error, ErrorKind, Key, Result};

pub(crate) use self::entry::{Change, ChangeKind, Entry};
use self::{
    entry::Line,
    frames::{HEADER, frame, read_frames},
};

/// The name of the file.
const FILE: &str = "journal";

/// The journal takes no further steps above this size. Chosen, not measured.
const MAX_BYTES: u64 = 256 << 20;

/// The open journal. Its file is locked, so that two processes cannot share it.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// The length of the file without a frame that failed to be written.
    bytes: u64,
    entries: VecDeque<Entry>,
    /// How many entries change each key.
    pending: HashMap<Key, usize>,
    is_closed: bool,
}

impl Journal {
    /// Whether there is a journal in `folder`.
    pub(crate) fn exists(folder: &Path) -> bool {
        folder.join(FILE).exists()
    }

    /// Opens the journal in `folder`, which is created if it is missing.
    ///
    /// # Errors
    /// `Invalid` if another process has it open, `Corrupt` if it is damaged, `Internal` if it cannot be read.
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let (mut file, text) = read_file(folder).map_err(|error| io_error("open journal", error))?;
        let found = read_frames(&text)?;
        let mut entries = VecDeque::<Entry>::new();
        for line in found.frames {
            match Line::decode(line)? {
                Line::Step(entry) => entries.push_back(entry),
                Line::Merged { id } => entries.retain(|entry| entry.id != id),
            }
        }
        let mut bytes = found.bytes;
        let prepared = if entries.is_empty() {
            bytes = HEADER.len() as u64;
            clear(&mut file).and_then(|()| sync_folder(folder))
        } else {
            file.set_len(bytes).and_then(|()| file.sync_all())
        };
        prepared.map_err(|error| io_error("open journal", error))?;
        let mut journal =
            Self { file, bytes, entries: VecDeque::new(), pending: HashMap::new(), is_closed: false };
        entries.into_iter().for_each(|entry| journal.push(entry));
        Ok(journal)
    }

    /// Appends a step. When this returns, it is on the disk.
    ///
    /// # Errors
    /// `Unavailable` if the disk or the journal is full, or if it is closed; nothing is appended then.
    pub(crate) fn append(&mut self, entry: Entry) -> Result<()> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Unavailable, "append to journal", "the journal is closed"));
        }
        let frame = frame(&Line::encode_step(&entry)?);
        if self.bytes + frame.len() as u64 > MAX_BYTES {
            return Err(Error::new(ErrorKind::Unavailable, "append to journal", "the journal is full"));
        }
        self.write(&frame, File::sync_data)
            .map_err(|error| Error::new(ErrorKind::Unavailable, "append to journal", error))?;
        self.push(entry);
        Ok(())
    }

    /// The step that was appended first.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.front()
    }

    /// Removes the first step after it was merged. If the note of it is lost in a crash, its receipt in the remote store
    /// keeps it from being merged again.
    pub(crate) fn remove_first(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        for change in &entry.changes {
            if let Some(count) = self.pending.get_mut(&change.key) {
                *count -= 1;
                if *count == 0 {
                    self.pending.remove(&change.key);
                }
            }
        }
        // The note needs no sync, because the receipt is enough.
        let noted = match self.entries.is_empty() {
            _ if self.is_closed => Ok(()),
            true => clear(&mut self.file).map(|()| self.bytes = HEADER.len() as u64),
            false => self.write(&frame(&Line::encode_merged(&entry.id)), |_| Ok(())),
        };
        if let Err(error) = noted {
            tracing::warn!(%error, "the journal could not be shortened; its steps will be compared again");
        }
    }

    /// Lets another process open the journal.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        if let Err(error) = self.file.unlock() {
            tracing::warn!(%error, "the journal could not be unlocked");
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a step that waits changes the key.
    pub(crate) fn is_pending(&self, key: &str) -> bool {
        self.pending.contains_key(key)
    }

    /// The first change of a key that waits.
    pub(crate) fn first_change(&self, key: &str) -> Option<&Change> {
        self.entries.iter().flat_map(|entry| &entry.changes).find(|change| change.key == key)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    fn push(&mut self, entry: Entry) {
        for change in &entry.changes {
            *self.pending.entry(change.key.clone()).or_default() += 1;
        }
        self.entries.push_back(entry);
    }

    /// Writes a frame after the last good one, so that a frame that failed is overwritten.
    fn write(&mut self, frame: &[u8], sync: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
        let written = self
            .file
            .seek(SeekFrom::Start(self.bytes))
            .and_then(|_| self.file.write_all(frame))
            .and_then(|()| sync(&self.file));
        match written {
            Ok(()) => self.bytes += frame.len() as u64,
            // The step is refused, so a later start must not find it. If this fails too, the next frame overwrites it.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        written
    }
}

/// The locked file and its contents.
fn read_file(folder: &Path) -> io::Result<(File, Vec<u8>)> {
    create_private_folder(folder)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(folder.join(FILE))?;
    file.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::AlreadyExists, "another process has the journal open")
        }
        fs::TryLockError::Error(error) => error,
    })?;
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok((file, text))
}

/// Creates the folder for this user alone, because the journal contains hashes of passwords.
fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Leaves only the header.
fn clear(file: &mut File) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    file.write_all(HEADER)?;
    file.set_len(HEADER.len() as u64)?;
    file.sync_all()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

fn io_error(operation: &'static str, error: io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::AlreadyExists => ErrorKind::Invalid,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, operation, error)
}

#[cfg(test)]
mod tests;

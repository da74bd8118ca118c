use std::{
    fs::File,
    io::{self, Read},
    mem,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use sha2::{Digest as _, Sha256};

use crate::Digest;

/// The number of bytes that are read at a time.
const BLOCK: usize = 64 * 1024;

/// A file whose bytes must have a known digest.
#[derive(Debug)]
pub struct CheckedFile {
    path: PathBuf,
    size: u64,
    digest: Digest,
    changed: Arc<AtomicBool>,
}

impl CheckedFile {
    pub(crate) fn new(path: PathBuf, size: u64, digest: Digest) -> Self {
        Self { path, size, digest, changed: Arc::default() }
    }

    /// The number of bytes that a reader yields unless it fails.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Opens the file for reading from its beginning.
    ///
    /// # Errors
    /// That it cannot be opened, or is no regular file any more.
    pub fn open(&self) -> io::Result<CheckedReader> {
        let file = open_regular(&self.path).inspect_err(|_| self.changed.store(true, Ordering::Relaxed))?;
        Ok(CheckedReader {
            file,
            size: self.size,
            digest: self.digest,
            changed: Arc::clone(&self.changed),
            hasher: Sha256::new(),
            hashed: 0,
            ready: Vec::new(),
            position: 0,
            held: None,
            ended: false,
        })
    }

    /// Whether a reader found that the file is no longer what was announced.
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

/// Reads a [`CheckedFile`]. The last block is yielded only after size and digest of the whole file were found right;
/// otherwise the read fails. So a request of a known length is never completed with other bytes than were announced.
#[derive(Debug)]
pub struct CheckedReader {
    file: File,
    size: u64,
    digest: Digest,
    changed: Arc<AtomicBool>,
    hasher: Sha256,
    hashed: u64,
    ready: Vec<u8>,
    position: usize,
    /// The block after `ready`, which is yielded when the one after it was read.
    held: Option<Vec<u8>>,
    ended: bool,
}

impl Read for CheckedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.position == self.ready.len() {
            if self.ended && self.held.is_none() {
                return Ok(0);
            }
            self.advance()?;
        }
        let mut rest = self.ready.get(self.position..).unwrap_or_default();
        let read = rest.read(buffer)?;
        self.position += read;
        Ok(read)
    }
}

impl CheckedReader {
    /// Makes the held block ready and reads the next one.
    fn advance(&mut self) -> io::Result<()> {
        let next = if self.ended { None } else { self.next_block()? };
        self.ready = mem::replace(&mut self.held, next).unwrap_or_default();
        self.position = 0;
        Ok(())
    }

    fn next_block(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut block = Vec::new();
        // One byte more than the announced size shows that the file grew, without reading all that was added.
        let limit = (self.size + 1).saturating_sub(self.hashed).min(BLOCK as u64);
        let read = Read::by_ref(&mut self.file).take(limit).read_to_end(&mut block);
        let read = read.inspect_err(|_| self.changed.store(true, Ordering::Relaxed))?;
        self.hasher.update(&block);
        self.hashed += read as u64;
        if (read as u64) < limit || self.hashed > self.size {
            self.ended = true;
            self.check()?;
        }
        Ok((!block.is_empty()).then_some(block))
    }

    fn check(&self) -> io::Result<()> {
        if self.hashed == self.size && Digest::finish(self.hasher.clone()) == self.digest {
            return Ok(());
        }
        self.changed.store(true, Ordering::Relaxed);
        Err(io::Error::new(io::ErrorKind::InvalidData, "file changed while it was sent"))
    }
}

/// Opens a regular file. A named pipe that has come to its path would wait for a writer, and a device may have no end.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidData, "it is no regular file any more")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn checked(written: &[u8], announced: &[u8]) -> (tempfile::TempDir, CheckedFile) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, written).unwrap();
        let file = CheckedFile::new(path, announced.len() as u64, Digest::of(announced));
        (dir, file)
    }

    #[test]
    fn unchanged_file_is_read_completely_at_any_size() {
        for size in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 3 * BLOCK + 7] {
            let bytes: Vec<u8> = (0..size).map(|index| (index % 251) as u8).collect();
            let (_dir, file) = checked(&bytes, &bytes);
            for _ in 0..2 {
                let mut read = Vec::new();
                file.open().unwrap().read_to_end(&mut read).unwrap();
                assert_eq!(read, bytes, "{size}");
            }
            assert!(!file.has_changed());
        }
    }

    #[test]
    fn changed_file_is_never_yielded_completely() {
        for size in [1, BLOCK - 1, BLOCK, 2 * BLOCK, 2 * BLOCK + 7] {
            let announced = vec![1; size];
            let mut other = announced.clone();
            other[0] = 2;
            for written in [other, vec![1; size - 1], vec![1; size + 1], vec![1; size + 3 * BLOCK]] {
                let (_dir, file) = checked(&written, &announced);
                let mut read = Vec::new();
                let error = file.open().unwrap().read_to_end(&mut read).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
                assert!(read.len() < size, "{} of {size}", read.len());
                assert!(file.has_changed());
            }
        }
    }

    #[test]
    fn file_that_is_gone_counts_as_changed() {
        let (dir, file) = checked(b"a", b"a");
        drop(dir);
        assert!(file.open().is_err());
        assert!(file.has_changed());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_file_any_more_is_not_waited_for() {
        let pipe = |path: &Path| {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        };
        for replace in [&pipe as &dyn Fn(&Path), &|path| fs::create_dir(path).unwrap()] {
            let (dir, file) = checked(b"a", b"a");
            fs::remove_file(dir.path().join("file")).unwrap();
            replace(&dir.path().join("file"));
            let error = file.open().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(file.has_changed());
        }
    }
}

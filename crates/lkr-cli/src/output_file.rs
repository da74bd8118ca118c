//! Files for results of long work.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A file that is written once, at the end of long work. It is opened before, so that a wrong path does not cost the results;
/// until it is written, it keeps what it contained. A new one that is not written is removed.
#[derive(Debug)]
pub(crate) struct OutputFile {
    path: PathBuf,
    file: File,
    is_new: bool,
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        let is_empty = |file: &File| file.metadata().is_ok_and(|it| it.is_file() && it.len() == 0);
        if self.is_new && is_empty(&self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl OutputFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        let file = File::options().create(true).truncate(false).write(true).open(path);
        let file = file.with_context(|| format!("write {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file, is_new })
    }

    /// Replaces what the file contains.
    pub(crate) fn write(self, write: impl FnOnce(&mut BufWriter<&File>) -> io::Result<()>) -> Result<()> {
        let replace = || {
            // A pipe has no length.
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
            let mut file = BufWriter::new(&self.file);
            write(&mut file)?;
            file.flush()
        };
        replace().with_context(|| format!("write {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_keeps_its_content_until_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figures");
        std::fs::write(&path, "those of yesterday").unwrap();
        drop(OutputFile::open(&path).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "those of yesterday");
        OutputFile::open(&path).unwrap().write(|file| file.write_all(b"new")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn new_file_that_is_not_written_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("figures");
        drop(OutputFile::open(&path).unwrap());
        assert!(!path.exists());
        OutputFile::open(&path).unwrap().write(|file| file.write_all(b"new")).unwrap();
        assert!(path.exists());
    }

    #[test]
    fn path_that_cannot_be_written_is_named_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let error = OutputFile::open(&dir.path().join("nowhere/figures")).unwrap_err().to_string();
        assert!(error.contains("nowhere/figures"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn device_can_be_written() {
        OutputFile::open(Path::new("/dev/null")).unwrap().write(|file| file.write_all(b"x")).unwrap();
    }
}

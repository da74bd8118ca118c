//! Files that contain secrets.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Writes a line into a file that only its owner can read, and replaces an existing file. The file is synced when this
/// returns. After a crash the old file is there, never a part of the new one.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = path.with_added_extension("tmp");
    // A temporary file that a crash left behind may be readable by others.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn write_replaces_the_file_with_one_that_only_its_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("secret"), folder.path().join("other"));
        fs::write(&other, "other").unwrap();
        // Symbolic links in the place of the file and of the temporary file are not followed.
        symlink(&other, &file).unwrap();
        symlink(&other, folder.path().join("secret.tmp")).unwrap();
        for text in ["one", "two"] {
            write(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("{text}\n"));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }
}

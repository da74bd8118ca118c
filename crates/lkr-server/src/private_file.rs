//! Files with secrets.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Writes a line into a file that only its owner can read, in place of one that is there. When this answers it is on
/// the disk; a crash before leaves what was there, never half of it.
pub(crate) fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let draft = path.with_added_extension("tmp");
    // One that a crash left behind may be readable by others.
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    File::open(folder)?.sync_all()
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn what_was_there_is_replaced_and_nobody_else_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let (file, other) = (folder.path().join("secret"), folder.path().join("other"));
        fs::write(&other, "other").unwrap();
        // Neither the file nor a draft that somebody put there is followed elsewhere.
        symlink(&other, &file).unwrap();
        symlink(&other, folder.path().join("secret.tmp")).unwrap();
        for text in ["one", "two"] {
            write(&file, text).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), format!("{text}\n"));
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::read_to_string(&other).unwrap(), "other");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no draft is left");
    }
}

//! Files that survive a crash in one piece.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

/// Replaces a file. After a crash it has the old content or the new one.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("tmp");
    let mut file = File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    fs::rename(&temporary, path)?;
    sync_folder(path)
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Other systems cannot open a folder as a file.
#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

//! The folders that graphs lie in. Each holds an environment, the mark of the `kb` that it belongs to, and, while
//! nothing is written, a seal: LMDB has no checksums, and to follow damaged pages may end the process. A sealed
//! environment is used only where it is, byte for byte, the one that was sealed. One without a seal was written to
//! when the process ended; LMDB makes sure that it is whole, but not that nobody changed its bytes since, so its pages
//! are looked at before they are followed.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::table::GraphEnv;
use crate::{
    codec::{strip_checksum, with_checksum},
    error::InternalResult,
    page_check,
};

const DATA: &str = "data.mdb";
const FINGERPRINT: &str = "seal";
const LINEAGE: &str = "lineage";
const READ: usize = 1 << 20;

/// The graph folders in `dir`; their names are numbers. What stands in its place and is no folder goes.
pub(super) fn list(dir: &Path) -> io::Result<Vec<PathBuf>> {
    if dir.symlink_metadata().is_ok_and(|found| found.is_file()) {
        fs::remove_file(dir)?;
    }
    fs::create_dir_all(dir)?;
    let mut folders = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().parse::<u64>().is_ok()) {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// Opens the environment in a folder, where it bears its seal and `lineage`, the mark of the `kb` at hand.
pub(super) fn open(folder: &Path, map_size: usize, lineage: &[u8]) -> InternalResult<Option<GraphEnv>> {
    if !lineages(folder)?.iter().any(|write_lineage| write_lineage == lineage) || !is_intact(folder)? {
        return Ok(None);
    }
    GraphEnv::open(folder, map_size).map(Some)
}

/// The marks of a folder: that of the last session, and that of the present one, which `kb` may not have got.
fn lineages(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let checksummed = match fs::read(folder.join(LINEAGE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let lineages =
        strip_checksum(&checksummed, || "the mark of a graph folder".to_owned()).unwrap_or_default();
    Ok(lineages.chunks(super::load::LINEAGE_BYTES).map(<[u8]>::to_vec).collect())
}

/// Writes the marks that the folder answers to.
pub(super) fn write_lineage(folder: &Path, lineages: &[&[u8]]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    replace(&folder.join(LINEAGE), &with_checksum(&lineages.concat()))
}

/// Whether the folder is what was sealed; where it has no seal, whether its pages are whole.
fn is_intact(folder: &Path) -> io::Result<bool> {
    let checksummed = match fs::read(folder.join(FINGERPRINT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(page_check::check(&folder.join(DATA))?.is_empty());
        }
        read => read?,
    };
    Ok(checksummed == fingerprint(&folder.join(DATA))?)
}

/// Seals what was written, unless it is sealed. Nothing may be written while this runs, nor after it without
/// [`remove_fingerprint`].
pub(super) fn write_fingerprint(folder: &Path) -> io::Result<()> {
    if folder.join(FINGERPRINT).exists() {
        return Ok(());
    }
    let fingerprint = fingerprint(&folder.join(DATA))?;
    replace(&folder.join(FINGERPRINT), &fingerprint)
}

/// Takes the seal off, so that the folder can be written to.
pub(super) fn remove_fingerprint(folder: &Path) -> io::Result<()> {
    match fs::remove_file(folder.join(FINGERPRINT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        removed => removed?,
    }
    File::open(folder)?.sync_all()
}

/// The length and the checksum of a file.
fn fingerprint(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut crc, mut length, mut buffer) = (0, 0_u64, vec![0; READ]);
    loop {
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            return Ok(with_checksum(&[&length.to_le_bytes()[..], &u32::to_le_bytes(crc)].concat()));
        }
        crc = crc32c::crc32c_append(crc, buffer.get(..read).unwrap_or_default());
        length += read as u64;
    }
}

/// Writes a file that is either the old one or the new one, whatever happens.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes)?;
    File::open(&partial)?.sync_all()?;
    fs::rename(&partial, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

//! The folders of clusters. Each contains an LMDB environment, the lineage of its `kb`, and, while nothing is written,
//! a fingerprint. LMDB has no checksums, and following damaged pages may end the process, so the structure of its file is
//! checked before a folder is opened. The fingerprint tells whether the rest of the file, which is most of it, is as it was
//! written. A folder without one was being written when the process ended.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use crc_fast::{CrcAlgorithm, Digest};

use super::table::ClusterEnv;
use crate::{
    codec::{strip_checksum, with_checksum},
    env::Map,
    error::{Failure, InternalResult},
    page_check,
};

const DATA: &str = "data.mdb";
const FINGERPRINT: &str = "seal";
const LINEAGE: &str = "lineage";
const READ: usize = 1 << 20;

/// The folders of clusters in `dir`; their names are numbers. A file in the place of `dir` is removed.
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

/// Removes a folder, or the file in its place, if there is one.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

/// Opens the environment in a folder if it has this `lineage` and the structure of its file is undamaged.
pub(super) fn open(folder: &Path, map: Map, lineage: &[u8]) -> InternalResult<Option<ClusterEnv>> {
    if !lineages(folder)?.iter().any(|write_lineage| write_lineage == lineage) {
        return Ok(None);
    }
    if !page_check::check(&folder.join(DATA))?.is_empty() {
        return Err(Failure::corrupt("pages of the clusters of vectors are damaged"));
    }
    ClusterEnv::open(folder, map).map(Some)
}

/// The lineages of a folder: that of the last session, and that of the current one, which may be missing in `kb`.
fn lineages(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let checksummed = match fs::read(folder.join(LINEAGE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let lineages =
        strip_checksum(&checksummed, || "the mark of a folder of clusters".to_owned()).unwrap_or_default();
    Ok(lineages.chunks(super::load::LINEAGE_BYTES).map(<[u8]>::to_vec).collect())
}

/// Writes the lineages of a folder.
pub(super) fn write_lineage(folder: &Path, lineages: &[&[u8]]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    replace(&folder.join(LINEAGE), &with_checksum(&lineages.concat()))
}

/// Whether the file matches its fingerprint, if there is one. Reads all of it.
pub(super) fn matches_fingerprint(folder: &Path) -> io::Result<bool> {
    let checksummed = match fs::read(folder.join(FINGERPRINT)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        read => read?,
    };
    Ok(checksummed == fingerprint(&folder.join(DATA))?)
}

/// Writes the fingerprint if it is missing. Nothing may write to the folder meanwhile, nor later without
/// [`remove_fingerprint`].
pub(super) fn write_fingerprint(folder: &Path) -> io::Result<()> {
    if folder.join(FINGERPRINT).exists() {
        return Ok(());
    }
    let fingerprint = fingerprint(&folder.join(DATA))?;
    replace(&folder.join(FINGERPRINT), &fingerprint)
}

/// Removes the fingerprint before the folder is written to.
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
    let (mut crc, mut length, mut buffer) = (Digest::new(CrcAlgorithm::Crc32Iscsi), 0_u64, vec![0; READ]);
    loop {
        let read = match file.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        if read == 0 {
            let crc = crc.finalize() as u32;
            return Ok(with_checksum(&[&length.to_le_bytes()[..], &crc.to_le_bytes()].concat()));
        }
        crc.update(buffer.get(..read).unwrap_or_default());
        length += read as u64;
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes)?;
    File::open(&partial)?.sync_all()?;
    fs::rename(&partial, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

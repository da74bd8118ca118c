//! Verifying an existing archive, and adding the secret key to one.

use lkr_archive::{ArchiveReader, ArchiveWriter};
use tokio::{
    fs,
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
};

use super::{BackupProblems, BackupSummary, PROBLEMS, SECRET_KEY};
use crate::{Error, ErrorKind, Folders, Result, error::During};

/// Reads an archive completely, checks it, and returns a summary of its content.
///
/// # Errors
/// `Invalid` if it is not an archive, or damaged.
pub async fn verify(from: impl AsyncRead + Unpin) -> Result<BackupSummary> {
    let during = "verify backup";
    let mut reader = ArchiveReader::open(from).await.during(during)?;
    let mut summary = BackupSummary::default();
    while let Some(mut entry) = reader.next().await.during(during)? {
        if entry.path() == PROBLEMS {
            summary.problems = read_problems(&mut entry).await?;
        } else {
            summary.files += 1;
            summary.bytes += entry.length();
        }
    }
    Ok(summary)
}

/// Copies an archive and adds the key that seals stored secrets. Anyone who has the new archive can read those secrets.
///
/// # Errors
/// `NotFound` if the folder has no key; `Invalid` if `from` is not an archive, or damaged.
pub async fn add_secret_key(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send,
    folders: &Folders,
) -> Result<()> {
    let during = "add secret key to backup";
    let key = read_secret_key(folders).await?;
    let mut reader = ArchiveReader::open(from).await.during(during)?;
    let mut writer = ArchiveWriter::begin(to, reader.info()).await.during(during)?;
    while let Some(mut entry) = reader.next().await.during(during)? {
        let (path, length) = (entry.path().to_owned(), entry.length());
        if path != SECRET_KEY {
            writer.add(&path, length, &mut entry).await.during(during)?;
        }
    }
    writer.add(SECRET_KEY, key.len() as u64, key.as_slice()).await.during(during)?;
    writer.finish().await.during(during).map(drop)
}

pub(super) async fn read_secret_key(folders: &Folders) -> Result<Vec<u8>> {
    let path = folders.secret_key();
    fs::read(&path).await.map_err(|error| {
        let reason = format!("{}: {error}", path.display());
        Error::new(ErrorKind::NotFound, "read secret key", reason)
    })
}

/// The maximum length of an entry that is read into memory.
const MAX_SMALL_ENTRY_BYTES: u64 = 64 * 1024 * 1024;

/// Reads the content of a small entry.
pub(super) async fn read_small_entry(entry: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = entry.take(MAX_SMALL_ENTRY_BYTES).read_to_end(&mut content).await;
    read.map_err(|error| Error::new(ErrorKind::Invalid, "read backup", error))?;
    Ok(content)
}

pub(super) async fn read_problems(entry: &mut (impl AsyncRead + Unpin)) -> Result<BackupProblems> {
    let json = read_small_entry(entry).await?;
    serde_json::from_slice(&json).map_err(|error| Error::new(ErrorKind::Invalid, "read backup", error))
}

//! Archives that are there already.

use lkr_archive::{ArchiveReader, ArchiveWriter};
use tokio::{
    fs,
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
};

use super::{BackupProblems, BackupSummary, FAULTS, SECRET_KEY};
use crate::{Error, ErrorKind, Folders, Result, error::During};

/// Reads an archive, and answers what is in it.
///
/// # Errors
/// `Invalid` where it is none, or not as it was written.
pub async fn verify(from: impl AsyncRead + Unpin) -> Result<BackupSummary> {
    let during = "verify backup";
    let mut reader = ArchiveReader::open(from).await.during(during)?;
    let mut found = BackupSummary::default();
    while let Some(mut entry) = reader.next().await.during(during)? {
        if entry.path() == FAULTS {
            found.faults = faults(&mut entry).await?;
        } else {
            found.files += 1;
            found.bytes += entry.length();
        }
    }
    Ok(found)
}

/// Copies an archive, and adds the key that seals stored secrets: whoever has that archive can read them.
///
/// # Errors
/// `NotFound` where the folder has none; `Invalid` where the archive is none, or not as it was written.
pub async fn add_secret_key(
    from: impl AsyncRead + Unpin,
    to: impl AsyncWrite + Unpin + Send,
    folders: &Folders,
) -> Result<()> {
    let during = "add the secret key";
    let key = read_secret_key(folders).await?;
    let mut reader = ArchiveReader::open(from).await.during(during)?;
    let mut writer = ArchiveWriter::begin(to, reader.about()).await.during(during)?;
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
        Error::new(ErrorKind::NotFound, "read the secret key", reason)
    })
}

/// The longest of those entries that are read whole.
const SMALL: u64 = 64 * 1024 * 1024;

/// The whole content of an entry.
pub(super) async fn read_small(entry: &mut (impl AsyncRead + Unpin)) -> Result<Vec<u8>> {
    let mut content = Vec::new();
    let read = entry.take(SMALL).read_to_end(&mut content).await;
    read.map_err(|error| Error::new(ErrorKind::Invalid, "read backup", error))?;
    Ok(content)
}

/// What was wrong with what was needed.
pub(super) async fn faults(entry: &mut (impl AsyncRead + Unpin)) -> Result<BackupProblems> {
    let json = read_small(entry).await?;
    serde_json::from_slice(&json).map_err(|error| Error::new(ErrorKind::Invalid, "read backup", error))
}

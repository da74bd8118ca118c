//! Backups, as they are put back.

use std::{
    io,
    path::{Path, PathBuf},
};

use lkr_archive::{ArchiveReader, Entry};
use lkr_catalog::STORE_VERSION;
use lkr_store_lmdb::LmdbStore;
use tokio::{
    fs,
    io::{AsyncRead, AsyncWriteExt, BufReader},
};

use super::{
    BLOBS, ENGINE, MISSING, SECRET_KEY, UPLOADS,
    look::{missing, read_small},
    take::{AT_ONCE, remove},
};
use crate::{Error, ErrorKind, Folders, Result, error::During, open::to_look_at};

const RESTORE: &str = "restore";

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// How many files.
    pub files: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// What the archive says was missing when it was made, by paths in it.
    pub missing: Vec<String>,
    /// Whether the key that seals stored secrets was in it.
    pub with_secret_key: bool,
}

/// Puts the knowledge base of an archive into folders in which there is none. Until all of the archive was read and
/// found to be as it was written, it lies beside them; then the folders are put in their places, the store as the last.
///
/// # Errors
/// `Conflict` where something is in these folders already. `Invalid` where it is no archive, a damaged one, or one of a
/// later version; then nothing is left of it.
pub async fn restore(from: impl AsyncRead + Unpin, to: &Folders) -> Result<Restored> {
    let mut reader = ArchiveReader::open(from).await.during(RESTORE)?;
    let about = reader.about();
    if about.engine != ENGINE || about.version > STORE_VERSION {
        let reason = format!(
            "it holds a store of kind {} and version {}, and this program knows {ENGINE} up to version \
             {STORE_VERSION}: {} made it",
            about.engine, about.version, about.program
        );
        return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
    }
    let places = Places::new(to);
    places.check()?;
    let mut restoring = Restoring { places, done: Restored::default(), secret_key: None };
    while let Some(entry) = reader.next().await.during(RESTORE)? {
        restoring.take(entry).await?;
    }
    let done = tokio::task::spawn_blocking(move || restoring.finish()).await;
    done.map_err(|error| Error::new(ErrorKind::Internal, RESTORE, error))?
}

struct Restoring {
    places: Places,
    done: Restored,
    secret_key: Option<Vec<u8>>,
}

impl Restoring {
    async fn take<R: AsyncRead + Unpin>(&mut self, mut entry: Entry<'_, R>) -> Result<()> {
        let path = entry.path().to_owned();
        match path.as_str() {
            SECRET_KEY => self.secret_key = Some(read_small(&mut entry).await?),
            MISSING => self.done.missing = missing(&mut entry).await?,
            _ => {
                let file = self.places.staged(&path)?;
                self.done.bytes += unpack(&mut entry, &file).await.map_err(failed)?;
            }
        }
        self.done.files += u64::from(path != MISSING);
        Ok(())
    }

    /// Looks whether the store can be opened, and puts all in its place.
    fn finish(mut self) -> Result<Restored> {
        let store = self.places.store.staging.clone();
        let opened = LmdbStore::open(&store, to_look_at());
        drop(opened.map_err(|error| Error::new(ErrorKind::Invalid, RESTORE, error))?);
        self.places.sync().map_err(failed)?;
        if let Some(key) = &self.secret_key {
            write_private(&self.places.secret_key, key).map_err(|error| {
                let reason = format!("the secret key {}: {error}", self.places.secret_key.display());
                Error::new(ErrorKind::Conflict, RESTORE, reason)
            })?;
            self.done.with_secret_key = true;
        }
        self.places.settle().map_err(failed)?;
        Ok(self.done)
    }
}

/// Where things go, and where they lie until then. What lies there goes with this.
struct Places {
    store: Place,
    blobs: Place,
    uploads: Place,
    secret_key: PathBuf,
}

struct Place {
    target: PathBuf,
    staging: PathBuf,
}

impl Places {
    fn new(folders: &Folders) -> Self {
        Self {
            store: Place::new(folders.store()),
            blobs: Place::new(folders.blobs_dir.clone()),
            uploads: Place::new(folders.uploads_dir.clone()),
            secret_key: folders.secret_key(),
        }
    }

    fn all(&self) -> [&Place; 3] {
        [&self.blobs, &self.uploads, &self.store]
    }

    /// Refuses where something is there, and removes what a restoration that was killed left.
    fn check(&self) -> Result<()> {
        for Place { target, .. } in self.all() {
            if !is_free(target).map_err(failed)? {
                let reason = format!("there is something in {} already", target.display());
                return Err(Error::new(ErrorKind::Conflict, RESTORE, reason));
            }
        }
        self.all().into_iter().try_for_each(|place| remove(&place.staging)).map_err(failed)
    }

    /// Where the content of an entry is put for now.
    fn staged(&self, path: &str) -> Result<PathBuf> {
        let (top, rest) = path.split_once('/').unwrap_or((path, ""));
        let place = match top {
            "store" => &self.store,
            BLOBS => &self.blobs,
            UPLOADS => &self.uploads,
            _ => {
                let reason = format!("it holds {path}, which this program does not know");
                return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
            }
        };
        Ok(place.staging.join(rest))
    }

    fn sync(&self) -> io::Result<()> {
        self.all().into_iter().try_for_each(|place| sync_below(&place.staging))
    }

    fn settle(&self) -> io::Result<()> {
        for Place { target, staging } in self.all() {
            if staging.exists() {
                // One that is empty gives way.
                if target.exists() {
                    std::fs::remove_dir(target)?;
                }
                std::fs::rename(staging, target)?;
                sync_folder(parent(target))?;
            }
        }
        Ok(())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for Place { staging, .. } in self.all() {
            if let Err(error) = remove(staging) {
                tracing::warn!(folder = %staging.display(), %error, "what was unpacked could not be removed");
            }
        }
    }
}

impl Place {
    fn new(target: PathBuf) -> Self {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let staging = parent(&target).join(format!("{name}.restoring"));
        Self { target, staging }
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Whether there is nothing, or an empty folder.
fn is_free(path: &Path) -> io::Result<bool> {
    match std::fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

async fn unpack(entry: &mut (impl AsyncRead + Unpin), to: &Path) -> io::Result<u64> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent(to)).await?;
    let mut file = fs::File::create_new(to).await?;
    let copied = tokio::io::copy_buf(&mut BufReader::with_capacity(AT_ONCE, entry), &mut file).await?;
    file.flush().await?;
    Ok(copied)
}

/// Makes what was written to the file system of a folder durable, all at once.
#[cfg(target_os = "linux")]
fn sync_below(folder: &Path) -> io::Result<()> {
    match std::fs::File::open(folder) {
        Ok(folder) => Ok(rustix::fs::syncfs(folder)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_below(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        return if folder.exists() { std::fs::File::open(folder)?.sync_all() } else { Ok(()) };
    }
    for entry in std::fs::read_dir(folder)? {
        sync_below(&entry?.path())?;
    }
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Writes a file that only its owner can read, unless it holds the same already.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|there| there == content) {
        return Ok(());
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()
}

fn failed(error: io::Error) -> Error {
    let kind = match error.kind() {
        // That is said of an archive alone, not of a disk.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::Other => {
            ErrorKind::Invalid
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, RESTORE, error)
}

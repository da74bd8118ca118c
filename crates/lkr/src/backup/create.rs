//! Creating a backup.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use lkr_archive::{ArchiveInfo, ArchiveWriter, digest};
use lkr_catalog::{Catalog, Originals, ReferencedRevision, Texts};
use lkr_ingest::GcPause;
use lkr_store_lmdb::LmdbStore;
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::OwnedMutexGuard,
};
use tokio_util::io::StreamReader;

use super::{
    BLOBS, BUFFER_BYTES, BackupProblems, ENGINE, PROBLEMS, SECRET_KEY, STORE, UPLOADS,
    inspect::read_secret_key, io_error, remove,
};
use crate::{
    Error, ErrorKind, Folders, KnowledgeBase, Result,
    blocking::blocking,
    embedded_store::{inspection_options, open_blobs, open_existing},
    error::During,
};

const CREATE: &str = "create backup";

/// The folder below the data folder for the copy of the store that is being archived.
const COPY: &str = "backup.tmp";

/// How many records are read at a time.
const PAGE_SIZE: usize = 100;

/// The embedded store of a knowledge base, for its backups.
#[derive(Debug)]
pub(crate) struct EmbeddedStore {
    pub(crate) store: LmdbStore,
    pub(crate) data_dir: PathBuf,
    /// Held by the backup that is in progress.
    pub(crate) backup_lock: Arc<tokio::sync::Mutex<()>>,
}

/// A consistent copy of a knowledge base at one moment, ready to be written as an archive.
#[derive(Debug)]
pub struct Backup {
    copy: StoreCopy,
    texts: Texts,
    originals: Originals,
    secret_key: Option<Vec<u8>>,
    /// Until this is dropped, no other backup can start and garbage collection keeps the files that this one refers to.
    _guards: Option<(GcPause, OwnedMutexGuard<()>)>,
}

/// What a backup wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// The number of files.
    pub files: u64,
    /// Their length in bytes.
    pub bytes: u64,
    /// Files that were missing or damaged. All others were written.
    pub problems: BackupProblems,
}

impl KnowledgeBase {
    /// Copies the knowledge base as it is now, to be written as an archive. Reads and writes continue; later changes
    /// are not part of the backup. Until the backup is dropped, the copy takes as much disk space below the data folder
    /// as the store, and deleted documents are not removed from disk.
    ///
    /// # Errors
    /// `Invalid` if the stores are not the embedded ones, `Overloaded` while another backup is in progress.
    pub async fn backup(&self) -> Result<Backup> {
        let shared = Arc::clone(&self.shared);
        // In a task of its own: if the caller is dropped, the copy is completed and then removed, never left incomplete.
        let created = tokio::spawn(async move {
            let Some(EmbeddedStore { store, data_dir, backup_lock }) = &shared.embedded else {
                return Err(Error::new(
                    ErrorKind::Invalid,
                    CREATE,
                    "only a knowledge base with all of its stores in its data folder can be backed up; Redis, Qdrant and \
                     object stores are backed up by their own means (docs/scaling.md)",
                ));
            };
            let Ok(backup_lock) = Arc::clone(backup_lock).try_lock_owned() else {
                return Err(Error::new(ErrorKind::Overloaded, CREATE, "another backup is in progress"));
            };
            let pause_gc = shared.ingestor.pause_gc().await;
            let copy = StoreCopy::create(store, data_dir).await?;
            let (texts, originals) = (shared.texts.clone(), shared.originals.clone());
            Ok(Backup { copy, texts, originals, secret_key: None, _guards: Some((pause_gc, backup_lock)) })
        });
        created.await.map_err(|error| Error::new(ErrorKind::Internal, CREATE, error))?
    }
}

/// [`KnowledgeBase::backup`] for a closed knowledge base. Its store stays locked until the backup is dropped.
///
/// # Errors
/// `NotFound` if there is no knowledge base or no folder of texts; `Conflict` if a process has it open.
pub async fn open_backup(folders: &Folders) -> Result<Backup> {
    let (folders, data_dir) = (folders.clone(), folders.data_dir.clone());
    let opened = blocking(CREATE, move || {
        let store = open_existing(&folders.data_dir)?;
        if !folders.blobs_dir.is_dir() {
            let reason = format!("the texts folder {} does not exist", folders.blobs_dir.display());
            return Err(Error::new(ErrorKind::NotFound, CREATE, reason));
        }
        Ok((store, open_blobs(&folders.blobs_dir)?, folders.uploads_dir))
    });
    let (store, blobs, uploads_dir) = opened.await?;
    let copy = StoreCopy::create(&store, &data_dir).await?;
    let (texts, originals) = (Texts::new(Arc::new(blobs)), Originals::in_folder(uploads_dir));
    Ok(Backup { copy, texts, originals, secret_key: None, _guards: None })
}

impl Backup {
    /// Adds the key that seals stored secrets. Anyone who has the archive can then read those secrets.
    ///
    /// # Errors
    /// `NotFound` if the folder has no key.
    pub async fn with_secret_key(self, folders: &Folders) -> Result<Self> {
        let key = read_secret_key(folders).await?;
        Ok(Self { secret_key: Some(key), ..self })
    }

    /// The length and the content of a file; `None` if it does not exist.
    async fn open(&self, source: &RevisionFile) -> lkr_catalog::Result<Option<(u64, ByteStream)>> {
        match source {
            RevisionFile::Blob(path) => {
                let found = self.texts.blob(path).await?;
                Ok(found.map(|(length, content)| (length, content.boxed())))
            }
            RevisionFile::Original(path) => {
                let Some(original) = self.originals.get(path).await? else { return Ok(None) };
                let length = original.size_bytes;
                Ok(Some((length, original.read(0..length).await?.boxed())))
            }
        }
    }

    /// Writes the archive.
    pub async fn write(&self, to: impl AsyncWrite + Unpin + Send) -> Result<BackupSummary> {
        let catalog = Catalog::new(Arc::new(self.copy.store.state()));
        let version = catalog.version().await.during(CREATE)?;
        let info = ArchiveInfo::new(concat!("lkr ", env!("CARGO_PKG_VERSION")), ENGINE, version);
        let archive = ArchiveWriter::begin(to, &info).await.during(CREATE)?;
        let mut writer = BackupWriter { backup: self, archive, summary: BackupSummary::default() };
        writer.add_store().await?;
        if let Some(key) = &self.secret_key {
            writer.add(SECRET_KEY, key.len() as u64, key.as_slice()).await?;
        }
        let mut after = None;
        loop {
            let (page, next) =
                catalog.referenced_revisions(after.as_deref(), PAGE_SIZE).await.during(CREATE)?;
            for revision in &page {
                writer.add_revision(revision).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return writer.finish().await,
            }
        }
    }
}

/// A file of a revision, by its path in its own storage.
enum RevisionFile {
    Blob(String),
    Original(String),
}

impl RevisionFile {
    fn archive_path(&self) -> String {
        match self {
            Self::Blob(path) => format!("{BLOBS}/{path}"),
            Self::Original(path) => format!("{UPLOADS}/{path}"),
        }
    }
}

type ByteStream = BoxStream<'static, io::Result<Bytes>>;

/// Writes an archive.
struct BackupWriter<'a, W: AsyncWrite + Unpin + Send> {
    backup: &'a Backup,
    archive: ArchiveWriter<W>,
    summary: BackupSummary,
}

impl<W: AsyncWrite + Unpin + Send> BackupWriter<'_, W> {
    async fn add_store(&mut self) -> Result<()> {
        let path = self.backup.copy.folder.0.join("kb").join("data.mdb");
        let file = File::open(&path).await.map_err(io_error(CREATE))?;
        let length = file.metadata().await.map_err(io_error(CREATE))?.len();
        self.add(STORE, length, BufReader::with_capacity(BUFFER_BYTES, file)).await
    }

    /// Adds the blobs and the original of a revision.
    async fn add_revision(&mut self, revision: &ReferencedRevision) -> Result<()> {
        let [text, blocks, notes] = Texts::paths(revision.doc_id, revision.revision);
        self.add_file(&RevisionFile::Blob(text), revision.text_sha256.as_deref(), true).await?;
        self.add_file(&RevisionFile::Blob(blocks), revision.blocks_sha256.as_deref(), false).await?;
        self.add_file(&RevisionFile::Blob(notes), None, false).await?;
        match revision.original.clone() {
            Some(path) => {
                self.add_file(&RevisionFile::Original(path), revision.original_sha256.as_deref(), true).await
            }
            None => Ok(()),
        }
    }

    /// Adds a file of a revision. The file is read twice: the first pass checks that it is readable and undamaged
    /// before its entry begins. A problem is recorded and does not stop the backup.
    async fn add_file(&mut self, file: &RevisionFile, sha256: Option<&str>, is_needed: bool) -> Result<()> {
        let path = file.archive_path();
        let first_pass = match self.backup.open(file).await {
            Ok(Some((_, content))) => digest(StreamReader::new(content)).await.ok(),
            Ok(None) if !is_needed => return Ok(()),
            Ok(None) | Err(_) => None,
        };
        let second_pass = self.backup.open(file).await.ok().flatten();
        let Some(((read_length, digest), (length, content))) = first_pass.zip(second_pass) else {
            self.summary.problems.missing.push(path);
            return Ok(());
        };
        if read_length != length || sha256.is_some_and(|sha256| sha256 != digest) {
            self.summary.problems.damaged.push(path.clone());
        }
        self.add(&path, length, StreamReader::new(content)).await
    }

    async fn add(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        self.summary.files += 1;
        self.summary.bytes += length;
        self.archive.add(path, length, content).await.during(CREATE)
    }

    async fn finish(mut self) -> Result<BackupSummary> {
        if !self.summary.problems.is_empty() {
            let json = serde_json::to_vec(&self.summary.problems);
            let json = json.map_err(|error| Error::new(ErrorKind::Internal, CREATE, error))?;
            self.archive.add(PROBLEMS, json.len() as u64, json.as_slice()).await.during(CREATE)?;
        }
        self.archive.finish().await.during(CREATE)?;
        Ok(self.summary)
    }
}

/// A copy of the store. Dropping it removes its folder.
#[derive(Debug)]
struct StoreCopy {
    store: LmdbStore,
    folder: CopyDir,
}

impl StoreCopy {
    async fn create(store: &LmdbStore, data_dir: &Path) -> Result<Self> {
        let folder = CopyDir(data_dir.join(COPY));
        remove_stale_copy(data_dir).map_err(io_error(CREATE))?;
        store.snapshot(&folder.0).await.during(CREATE)?;
        let path = folder.0.clone();
        let opened = blocking(CREATE, move || {
            LmdbStore::open(&path, inspection_options())
                .map_err(|error| Error::new(ErrorKind::Internal, CREATE, error))
        });
        Ok(Self { store: opened.await?, folder })
    }
}

#[derive(Debug)]
struct CopyDir(PathBuf);

impl Drop for CopyDir {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "temporary store copy of a backup could not be removed");
        }
    }
}

/// Removes the store copy that an interrupted backup left. No backup may be in progress.
pub(crate) fn remove_stale_copy(data_dir: &Path) -> io::Result<()> {
    remove(&data_dir.join(COPY))
}

//! Creating a backup.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt, stream};
use lkr_archive::{ArchiveInfo, ArchiveWriter, digest};
use lkr_catalog::{Catalog, Originals, ReferencedRevision, Texts};
use lkr_ingest::GcPause;
use tokio::{
    fs::File,
    io::{AsyncRead, AsyncWrite, BufReader},
    sync::OwnedMutexGuard,
};
use tokio_util::io::StreamReader;

use super::{
    BUFFER_BYTES, BackupProblems, CREATE, ENGINE, PROBLEMS, SECRET_KEY, STORE,
    inspect::read_secret_key,
    io_error,
    revision_file::{Content, Files, RevisionFile},
    store_copy::StoreCopy,
};
use crate::{
    Error, ErrorKind, Folders, KnowledgeBase, Result,
    blocking::blocking,
    embedded_store::{open_blobs, open_existing},
    error::During,
};

/// How many files are read at once.
const READ_AHEAD: usize = 16;

/// How many records are read at a time.
const PAGE_SIZE: usize = 100;

/// A consistent copy of a knowledge base at one moment, ready to be written as an archive.
#[derive(Debug)]
pub struct Backup {
    copy: StoreCopy,
    files: Files,
    secret_key: Option<Vec<u8>>,
    /// Until this is dropped, no other backup can start and garbage collection keeps the files that this one refers to.
    guards: Option<(GcPause, OwnedMutexGuard<()>)>,
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
    /// as the embedded store would, and no process removes the texts, originals and points of deleted documents.
    ///
    /// # Errors
    /// `Invalid` if the knowledge base has no folder; `Overloaded` while another backup of this process is in progress, or if the
    /// embedding model was changed meanwhile; `Unavailable` if a store is.
    pub async fn backup(&self) -> Result<Backup> {
        let shared = Arc::clone(&self.shared);
        // In a task of its own: if the caller is dropped, the copy is completed and then removed, never left incomplete.
        let created = tokio::spawn(async move {
            let Some(source) = &shared.backup_source else {
                let reason = "only a knowledge base that was opened in a folder can be backed up";
                return Err(Error::new(ErrorKind::Invalid, CREATE, reason));
            };
            let Ok(lock) = Arc::clone(&source.lock).try_lock_owned() else {
                return Err(Error::new(ErrorKind::Overloaded, CREATE, "another backup is in progress"));
            };
            let pause = shared.ingestor.pause_gc().await.during(CREATE)?;
            let copy = StoreCopy::of(source, &*shared.state, &*shared.vectors).await?;
            check_unbroken(&pause)?;
            let files = Files { texts: shared.texts.clone(), originals: shared.originals.clone() };
            Ok(Backup { copy, files, secret_key: None, guards: Some((pause, lock)) })
        });
        created.await.map_err(|error| Error::new(ErrorKind::Internal, CREATE, error))?
    }
}

/// Fails if what the copy refers to may have been collected.
fn check_unbroken(pause: &GcPause) -> Result<()> {
    if pause.is_unbroken() {
        return Ok(());
    }
    let reason =
        "the state store could not be reached for a minute, so others may have removed what the backup needs";
    Err(Error::new(ErrorKind::Unavailable, CREATE, reason))
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
    let copy = StoreCopy::of_embedded(&store, &data_dir).await?;
    let files = Files { texts: Texts::new(Arc::new(blobs)), originals: Originals::in_folder(uploads_dir) };
    Ok(Backup { copy, files, secret_key: None, guards: None })
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
            writer.add_revisions(&page).await?;
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        if let Some((pause, _)) = &self.guards {
            check_unbroken(pause)?;
        }
        writer.finish().await
    }
}

/// Writes an archive.
struct BackupWriter<'a, W: AsyncWrite + Unpin + Send> {
    backup: &'a Backup,
    archive: ArchiveWriter<W>,
    summary: BackupSummary,
}

impl<W: AsyncWrite + Unpin + Send> BackupWriter<'_, W> {
    async fn add_store(&mut self) -> Result<()> {
        let path = self.backup.copy.file();
        let file = File::open(&path).await.map_err(io_error(CREATE))?;
        let length = file.metadata().await.map_err(io_error(CREATE))?.len();
        self.add(STORE, length, BufReader::with_capacity(BUFFER_BYTES, file)).await
    }

    /// Adds the blobs and the originals of revisions. Some files are read ahead, because each takes a request.
    async fn add_revisions(&mut self, revisions: &[ReferencedRevision]) -> Result<()> {
        let files = self.backup.files.clone();
        let wanted: Vec<RevisionFile> = revisions.iter().flat_map(RevisionFile::all_of).collect();
        let read = stream::iter(wanted).map(move |file| files.clone().read(file).boxed());
        let mut read = read.buffered(READ_AHEAD);
        while let Some((file, content)) = read.next().await {
            match content {
                Content::Absent => {}
                Content::Unreadable => self.summary.problems.missing.push(file.archive_path()),
                Content::Whole(bytes) => {
                    let (length, digest) = digest(&bytes[..]).await.map_err(io_error(CREATE))?;
                    self.check(&file, &digest);
                    self.add(&file.archive_path(), length, &bytes[..]).await?;
                }
                Content::Long => self.add_long(&file).await?,
            }
        }
        Ok(())
    }

    /// Adds a file that is read twice: the first pass checks that it is readable before its entry begins.
    async fn add_long(&mut self, file: &RevisionFile) -> Result<()> {
        let first_pass = match self.backup.files.open(&file.place).await {
            Ok(Some((_, content))) => digest(StreamReader::new(content)).await.ok(),
            Ok(None) | Err(_) => None,
        };
        let second_pass = self.backup.files.open(&file.place).await.ok().flatten();
        match first_pass.zip(second_pass) {
            Some(((read_length, digest), (length, content))) if read_length == length => {
                self.check(file, &digest);
                self.add(&file.archive_path(), length, StreamReader::new(content)).await
            }
            _ => {
                self.summary.problems.missing.push(file.archive_path());
                Ok(())
            }
        }
    }

    /// Notes if a file is damaged. It is added nevertheless.
    fn check(&mut self, file: &RevisionFile, digest: &str) {
        if file.sha256.as_ref().is_some_and(|sha256| sha256 != digest) {
            self.summary.problems.damaged.push(file.archive_path());
        }
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

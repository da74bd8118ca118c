//! Backups, as they are made.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream::BoxStream};
use lkr_archive::{About, ArchiveWriter, digest};
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
    AT_ONCE, BLOBS, BackupProblems, ENGINE, FAULTS, SECRET_KEY, STORE, UPLOADS, failed,
    look::read_secret_key, remove,
};
use crate::{
    Error, ErrorKind, Folders, KnowledgeBase, Result,
    blocking::blocking,
    error::During,
    open::{open_blobs, open_existing, to_look_at},
};

const TAKE: &str = "make a backup";

/// The folder, below that of the stores, of the copy that is being archived.
const COPY: &str = "backup.tmp";

/// How many records are read at a time.
const PAGE: usize = 100;

/// What a backup needs of an embedded knowledge base besides its parts.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) store: LmdbStore,
    pub(crate) data_dir: PathBuf,
    /// Whoever makes a backup has it.
    pub(crate) taking: Arc<tokio::sync::Mutex<()>>,
}

/// A backup that is ready to be written: what was there at one moment.
#[derive(Debug)]
pub struct Backup {
    copy: Copy,
    texts: Texts,
    originals: Originals,
    secret_key: Option<Vec<u8>>,
    /// Before the copy is gone, another one cannot be made; what it needs stays until it is written.
    _taking: Option<(GcPause, OwnedMutexGuard<()>)>,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupSummary {
    /// How many files.
    pub files: u64,
    /// How many bytes these have.
    pub bytes: u64,
    /// What was not as it should be. The rest was written all the same.
    pub faults: BackupProblems,
}

impl KnowledgeBase {
    /// Copies what there is now, to be written as an archive: reads and writes go on, and what they change from now on
    /// is not in it. It takes as much room in the folder of the stores as they do, until it is dropped, and nothing
    /// that is deleted meanwhile is taken from the disk.
    ///
    /// # Errors
    /// `Invalid` where the stores are others than the embedded ones, `Overloaded` where a backup is being made.
    pub async fn backup(&self) -> Result<Backup> {
        let parts = Arc::clone(&self.parts);
        // A caller that hangs up must not leave a copy that nobody answers for: it is made, and goes at once.
        let taken = tokio::spawn(async move {
            let Some(Embedded { store, data_dir, taking }) = &parts.embedded else {
                return Err(Error::new(ErrorKind::Invalid, TAKE, "the stores are not in a folder"));
            };
            let Ok(taking) = Arc::clone(taking).try_lock_owned() else {
                return Err(Error::new(ErrorKind::Overloaded, TAKE, "another is being made"));
            };
            let pause_gc = parts.ingestor.pause_gc().await;
            let copy = Copy::make(store, data_dir).await?;
            let (texts, originals) = (parts.texts.clone(), parts.originals.clone());
            Ok(Backup { copy, texts, originals, secret_key: None, _taking: Some((pause_gc, taking)) })
        });
        taken.await.map_err(|error| Error::new(ErrorKind::Internal, TAKE, error))?
    }
}

/// [`KnowledgeBase::backup`] of one that is closed. It stays closed to others until what this answers is dropped.
///
/// # Errors
/// `NotFound` where there is none, or its folder of texts is not there; `Conflict` where a process has it open.
pub async fn open_backup(folders: &Folders) -> Result<Backup> {
    let (folders, data_dir) = (folders.clone(), folders.data_dir.clone());
    let opened = blocking(TAKE, move || {
        let store = open_existing(&folders.data_dir)?;
        if !folders.blobs_dir.is_dir() {
            let reason = format!("there are no texts in {}", folders.blobs_dir.display());
            return Err(Error::new(ErrorKind::NotFound, TAKE, reason));
        }
        Ok((store, open_blobs(&folders.blobs_dir)?, folders.uploads_dir))
    });
    let (store, blobs, uploads_dir) = opened.await?;
    let copy = Copy::make(&store, &data_dir).await?;
    let (texts, originals) = (Texts::new(Arc::new(blobs)), Originals::in_folder(uploads_dir));
    Ok(Backup { copy, texts, originals, secret_key: None, _taking: None })
}

impl Backup {
    /// The same, with the key that seals stored secrets: whoever has that archive can read them.
    ///
    /// # Errors
    /// `NotFound` where the folder has none.
    pub async fn with_secret_key(self, folders: &Folders) -> Result<Self> {
        let key = read_secret_key(folders).await?;
        Ok(Self { secret_key: Some(key), ..self })
    }

    /// The length and the content of something; `None` where it is not there.
    async fn open(&self, source: &Source) -> lkr_catalog::Result<Option<(u64, Content)>> {
        match source {
            Source::Blob(path) => {
                let found = self.texts.blob(path).await?;
                Ok(found.map(|(length, content)| (length, content.boxed())))
            }
            Source::Original(path) => {
                let Some(original) = self.originals.get(path).await? else { return Ok(None) };
                let length = original.size_bytes;
                Ok(Some((length, original.read(0..length).await?.boxed())))
            }
        }
    }

    /// Writes the archive.
    pub async fn write(&self, to: impl AsyncWrite + Unpin + Send) -> Result<BackupSummary> {
        let catalog = Catalog::new(Arc::new(self.copy.store.state()));
        let version = catalog.version().await.during(TAKE)?;
        let about = About::new(concat!("lkr ", env!("CARGO_PKG_VERSION")), ENGINE, version);
        let writer = ArchiveWriter::begin(to, &about).await.during(TAKE)?;
        let mut writing = Writing { backup: self, writer, done: BackupSummary::default() };
        writing.store().await?;
        if let Some(key) = &self.secret_key {
            writing.add(SECRET_KEY, key.len() as u64, key.as_slice()).await?;
        }
        let mut after = None;
        loop {
            let (page, next) = catalog.referenced_revisions(after.as_deref(), PAGE).await.during(TAKE)?;
            for kept in &page {
                writing.kept(kept).await?;
            }
            match next {
                Some(next) => after = Some(next),
                None => return writing.finish().await,
            }
        }
    }
}

/// What lies elsewhere than in the store, by its path there.
enum Source {
    Blob(String),
    Original(String),
}

impl Source {
    /// Its path in the archive.
    fn name(&self) -> String {
        match self {
            Self::Blob(path) => format!("{BLOBS}/{path}"),
            Self::Original(path) => format!("{UPLOADS}/{path}"),
        }
    }
}

/// What is stored of something, as it comes.
type Content = BoxStream<'static, io::Result<Bytes>>;

/// An archive on its way.
struct Writing<'a, W: AsyncWrite + Unpin + Send> {
    backup: &'a Backup,
    writer: ArchiveWriter<W>,
    done: BackupSummary,
}

impl<W: AsyncWrite + Unpin + Send> Writing<'_, W> {
    async fn store(&mut self) -> Result<()> {
        let path = self.backup.copy.folder.0.join("kb").join("data.mdb");
        let file = File::open(&path).await.map_err(failed(TAKE))?;
        let length = file.metadata().await.map_err(failed(TAKE))?.len();
        self.add(STORE, length, BufReader::with_capacity(AT_ONCE, file)).await
    }

    /// The blobs and the original of a revision.
    async fn kept(&mut self, kept: &ReferencedRevision) -> Result<()> {
        let [text, blocks, notes] = Texts::paths(kept.doc_id, kept.revision);
        self.stored(&Source::Blob(text), kept.text_sha256.as_deref(), true).await?;
        self.stored(&Source::Blob(blocks), kept.blocks_sha256.as_deref(), false).await?;
        self.stored(&Source::Blob(notes), None, false).await?;
        match kept.original.clone() {
            Some(path) => self.stored(&Source::Original(path), kept.original_sha256.as_deref(), true).await,
            None => Ok(()),
        }
    }

    /// Something that is read twice: whether it can be, and is what was stored, is known before it is begun. What is not
    /// keeps nothing else from being saved.
    async fn stored(&mut self, source: &Source, sha256: Option<&str>, is_needed: bool) -> Result<()> {
        let name = source.name();
        let read = match self.backup.open(source).await {
            Ok(Some((_, content))) => digest(StreamReader::new(content)).await.ok(),
            Ok(None) if !is_needed => return Ok(()),
            Ok(None) | Err(_) => None,
        };
        let again = self.backup.open(source).await.ok().flatten();
        let Some((read, (length, content))) = read.zip(again) else {
            self.done.faults.missing.push(name);
            return Ok(());
        };
        if read.0 != length || sha256.is_some_and(|sha256| sha256 != read.1) {
            self.done.faults.damaged.push(name.clone());
        }
        self.add(&name, length, StreamReader::new(content)).await
    }

    async fn add(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        self.done.files += 1;
        self.done.bytes += length;
        self.writer.add(path, length, content).await.during(TAKE)
    }

    async fn finish(mut self) -> Result<BackupSummary> {
        if !self.done.faults.is_empty() {
            let json = serde_json::to_vec(&self.done.faults);
            let json = json.map_err(|error| Error::new(ErrorKind::Internal, TAKE, error))?;
            self.writer.add(FAULTS, json.len() as u64, json.as_slice()).await.during(TAKE)?;
        }
        self.writer.finish().await.during(TAKE)?;
        Ok(self.done)
    }
}

/// A copy of a store, which goes when this does.
#[derive(Debug)]
struct Copy {
    store: LmdbStore,
    folder: CopyFolder,
}

impl Copy {
    async fn make(store: &LmdbStore, data_dir: &Path) -> Result<Self> {
        let folder = CopyFolder(data_dir.join(COPY));
        clear_copies(data_dir).map_err(failed(TAKE))?;
        store.snapshot(&folder.0).await.during(TAKE)?;
        let path = folder.0.clone();
        let opened = blocking(TAKE, move || {
            LmdbStore::open(&path, to_look_at()).map_err(|error| Error::new(ErrorKind::Internal, TAKE, error))
        });
        Ok(Self { store: opened.await?, folder })
    }
}

#[derive(Debug)]
struct CopyFolder(PathBuf);

impl Drop for CopyFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "the copy that was archived could not be removed");
        }
    }
}

/// Removes what a process that was killed left of a backup. Nobody may be making one.
pub(crate) fn clear_copies(data_dir: &Path) -> io::Result<()> {
    remove(&data_dir.join(COPY))
}

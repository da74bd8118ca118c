//! A knowledge base in a folder.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_catalog::{Originals, Outbox, Texts};
use lkr_models::{ChatModelSource, Embedder, Reranker, RerankerSource};
use lkr_state::{ContentionObserver, ObservedState, StateStore};
use lkr_store_lmdb::{LmdbOptions, LmdbState, LmdbStore};
use lkr_taxonomy::Taxonomy;
use object_store::local::LocalFileSystem;

use crate::{
    Builder, Error, ErrorKind, IngestOptions, KnowledgeBase, Result, SearchOptions,
    backup::{Embedded, clear_copies},
    blocking::blocking,
};

/// Where a knowledge base lies and how it works.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// The folder of the stores; made unless it is there.
    pub data_dir: PathBuf,
    /// The folder of the texts; `<data_dir>/blobs` unless another is named.
    pub blobs_dir: PathBuf,
    /// The folder of the files that documents come as; `<data_dir>/uploads` unless another is named.
    pub uploads_dir: PathBuf,
    /// The folder of the embedding model. Where it does not exist, searches go by words alone.
    pub model_dir: PathBuf,
    /// Whether the embedding model that all documents are to have vectors of is named once it is open, by
    /// [`start_embedder`](KnowledgeBase::start_embedder), rather than being that of the folder.
    pub embedder_is_named_later: bool,
    /// The folder of the reranker. Where it does not exist, nothing ranks results again, unless `rerankers` does.
    pub rerank_model_dir: PathBuf,
    /// What names a reranker anew at each search, above the one in the folder.
    pub rerankers: Option<Arc<dyn RerankerSource>>,
    /// What names the language models anew whenever one is asked; none unless given.
    pub chat_models: Option<Arc<dyn ChatModelSource>>,
    /// The categories that documents are classified into.
    pub taxonomy: Taxonomy,
    /// What is told of tasks that ended and documents that were deleted.
    pub outbox: Option<Arc<dyn Outbox>>,
    /// Is told of each operation that gave up because other writers kept changing its records.
    pub contention: Option<ContentionObserver>,
    /// How ingestion works.
    pub ingest: IngestOptions,
    /// How searches work.
    pub search: SearchOptions,
}

impl OpenOptions {
    /// The defaults for a folder.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        let data_dir = data_dir.as_ref().to_path_buf();
        Self {
            blobs_dir: data_dir.join("blobs"),
            uploads_dir: data_dir.join("uploads"),
            model_dir: data_dir.join("models").join("default"),
            embedder_is_named_later: false,
            rerank_model_dir: data_dir.join("models").join("reranker"),
            rerankers: None,
            chat_models: None,
            data_dir,
            taxonomy: Taxonomy::built_in(),
            outbox: None,
            contention: None,
            ingest: IngestOptions::default(),
            search: SearchOptions::default(),
        }
    }
}

impl KnowledgeBase {
    /// Opens the knowledge base in a folder, which is made unless it is there.
    ///
    /// # Errors
    /// `Conflict` where another process has it open.
    pub async fn open(data_dir: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(OpenOptions::new(data_dir)).await
    }

    /// Opens a knowledge base as told.
    ///
    /// # Errors
    /// `Conflict` where another process has it open, `Invalid` where a model's folder holds no usable model.
    pub async fn open_with(options: OpenOptions) -> Result<Self> {
        let OpenOptions { data_dir, blobs_dir, uploads_dir, model_dir, rerank_model_dir, .. } = options;
        let opened = blocking("open knowledge base", move || {
            refuse_texts_alone(&data_dir, &blobs_dir)?;
            let store = open_store(&data_dir, LmdbOptions::default())?;
            if let Err(error) = clear_copies(&data_dir) {
                tracing::warn!(%error, "what is left of a backup could not be removed");
            }
            let embedded = Embedded { store, data_dir, taking: Arc::default() };
            let models = (open_model(&model_dir)?, open_reranker(&rerank_model_dir)?);
            Ok((embedded, open_blobs(&blobs_dir)?, models))
        });
        let (embedded, blobs, (embedder, reranker)) = opened.await?;
        let store = &embedded.store;
        let builder = Builder::default()
            .vectors(Arc::new(store.vectors()))
            .state(observed(store.state(), options.contention))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs))
            .originals(Originals::in_folder(uploads_dir))
            .taxonomy(options.taxonomy)
            .ingest_options(options.ingest)
            .search_options(options.search)
            .embedder_is_named_later(options.embedder_is_named_later)
            .embedded(embedded);
        let builder = given(builder, embedder, Builder::embedder);
        let builder = given(builder, reranker, Builder::reranker);
        let builder = given(builder, options.rerankers, Builder::reranker_source);
        let builder = given(builder, options.chat_models, Builder::chat_models);
        given(builder, options.outbox, Builder::outbox).build().await
    }
}

/// The records of a store, with their observer if there is one.
fn observed(state: LmdbState, observer: Option<ContentionObserver>) -> Arc<dyn StateStore> {
    let state: Arc<dyn StateStore> = Arc::new(state);
    match observer {
        Some(observer) => Arc::new(ObservedState::new(state, observer)),
        None => state,
    }
}

/// The builder with what there is of a part.
fn given<T>(builder: Builder, part: Option<T>, with: fn(Builder, T) -> Builder) -> Builder {
    match part {
        Some(part) => with(builder, part),
        None => builder,
    }
}

/// Opens the embedding model in a folder; `None` where the folder does not exist.
///
/// # Errors
/// `Invalid` where it holds no usable model.
pub async fn open_embedder(dir: impl AsRef<Path>) -> Result<Option<Arc<dyn Embedder>>> {
    let dir = dir.as_ref().to_path_buf();
    blocking("open embedding model", move || if dir.exists() { open_model(&dir) } else { Ok(None) }).await
}

/// Opens the records of the knowledge base in a folder, and nothing else of it: for what is done while it is closed.
/// It is closed again when the last clone of what this answers goes.
///
/// # Errors
/// `NotFound` where there is none, `Conflict` where a process has it open.
pub async fn open_state(data_dir: impl AsRef<Path>) -> Result<Arc<dyn StateStore>> {
    let data_dir = data_dir.as_ref().to_path_buf();
    let open = move || Ok(Arc::new(open_existing(&data_dir)?.state()) as Arc<dyn StateStore>);
    blocking("open store", open).await
}

/// How a store is opened in which nothing is done by itself.
pub(crate) fn to_look_at() -> LmdbOptions {
    let mut options = LmdbOptions::default();
    options.build_threads = 0;
    options
}

/// Opens a store that is there, to look at it.
///
/// # Errors
/// `NotFound` where there is none, `Conflict` where a process has it open.
pub(crate) fn open_existing(data_dir: &Path) -> Result<LmdbStore> {
    if !LmdbStore::is_in(&data_dir.join("store")) {
        let reason = format!("no knowledge base in {}", data_dir.display());
        return Err(Error::new(ErrorKind::NotFound, "open store", reason));
    }
    open_store(data_dir, to_look_at())
}

/// Refuses texts whose store is gone: a new one would take them for what nothing needs any more.
fn refuse_texts_alone(data_dir: &Path, blobs_dir: &Path) -> Result<()> {
    let store = data_dir.join("store");
    if LmdbStore::is_in(&store) || !has_texts(blobs_dir) {
        return Ok(());
    }
    let reason = format!(
        "there are texts in {}, but no store in {} that they belong to: restore a backup, or move them away",
        blobs_dir.display(),
        store.display()
    );
    Err(Error::new(ErrorKind::Conflict, "open knowledge base", reason))
}

/// Whether a text lies in a folder, `<document>-<revision>`.
fn has_texts(blobs_dir: &Path) -> bool {
    let folders = entries(&blobs_dir.join("texts")).filter(|folder| is_hex(&name_of(folder), 2));
    folders.flat_map(|folder| entries(&folder)).any(|text| is_text(&name_of(&text)))
}

fn is_text(name: &str) -> bool {
    name.split_once('-')
        .is_some_and(|(document, revision)| is_hex(document, 32) && revision.parse::<u64>().is_ok())
}

pub(crate) fn open_store(data_dir: &Path, options: LmdbOptions) -> Result<LmdbStore> {
    LmdbStore::open(&data_dir.join("store"), options).map_err(not_opened)
}

pub(crate) fn not_opened(error: lkr_store_lmdb::Error) -> Error {
    let kind = match error.kind() {
        lkr_store_lmdb::ErrorKind::Locked => ErrorKind::Conflict,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, "open store", error)
}

pub(crate) fn open_blobs(dir: &Path) -> Result<LocalFileSystem> {
    let failed = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "open blobs", format!("{}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(|e| failed(&e))?;
    remove_half_written(dir);
    let blobs = LocalFileSystem::new_with_prefix(dir).map_err(|e| failed(&e))?;
    Ok(blobs.with_fsync(true).with_automatic_cleanup(false))
}

/// Removes the texts that a process which was killed had begun to write.
fn remove_half_written(dir: &Path) {
    for text in half_written(dir) {
        if let Err(error) = std::fs::remove_file(&text) {
            tracing::warn!(path = %text.display(), %error, "a half-written text could not be removed");
        }
    }
}

/// The texts that a process which was killed had begun to write. A blob is written under its name, `#` and a
/// number, and then renamed; the store's lock says that nobody is writing now. The folder is the user's and may hold
/// other files: what does not lie and look like one of these texts is none of ours.
pub(crate) fn half_written(dir: &Path) -> Vec<PathBuf> {
    let kinds = Texts::KINDS.map(|kind| dir.join(kind));
    let folders = kinds.iter().flat_map(|kind| entries(kind));
    let folders = folders.filter(|folder| is_hex(&name_of(folder), 2));
    folders.flat_map(|folder| entries(&folder)).filter(|text| is_half_written(&name_of(text))).collect()
}

/// What lies in a folder; nothing where it cannot be read.
fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// `<document>-<revision>#<number>`
fn is_half_written(name: &str) -> bool {
    name.split_once('#').is_some_and(|(text, number)| is_text(text) && number.parse::<u64>().is_ok())
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(feature = "local-models")]
fn open_model(dir: &Path) -> Result<Option<Arc<dyn Embedder>>> {
    if !dir.exists() {
        tracing::warn!(dir = %dir.display(), "no embedding model there: searches go by words alone");
        return Ok(None);
    }
    let options = lkr_models_local::LocalOptions::default();
    let embedder = lkr_models_local::LocalEmbedder::open(dir, options)
        .map_err(|error| Error::new(ErrorKind::Invalid, "open embedding model", error))?;
    Ok(Some(Arc::new(embedder)))
}

#[cfg(feature = "local-models")]
fn open_reranker(dir: &Path) -> Result<Option<Arc<dyn Reranker>>> {
    if !dir.exists() {
        return Ok(None);
    }
    let reranker = lkr_models_local::LocalReranker::open(dir, &lkr_models_local::RerankOptions::default())
        .map_err(|error| Error::new(ErrorKind::Invalid, "open reranker", error))?;
    Ok(Some(Arc::new(reranker)))
}

#[cfg(not(feature = "local-models"))]
fn open_reranker(_: &Path) -> Result<Option<Arc<dyn Reranker>>> {
    Ok(None)
}

#[cfg(not(feature = "local-models"))]
fn open_model(_: &Path) -> Result<Option<Arc<dyn Embedder>>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_written_blobs_are_told_by_their_names() {
        let document = "0123456789abcdef0123456789abcdef";
        for (rest, half) in
            [("-1#1", true), ("-20#12", true), ("-1", false), ("#1", false), ("-1#", false), ("-x#1", false)]
        {
            assert_eq!(is_half_written(&format!("{document}{rest}")), half, "{rest}");
        }
        assert!(!is_half_written("issue-1#12"));
    }

    #[test]
    fn only_half_written_blobs_go() {
        let dir = tempfile::tempdir().unwrap();
        let document = "0123456789abcdef0123456789abcdef";
        let half = format!("texts/ef/{document}-2#1");
        let others = [
            format!("texts/ef/{document}-1"),
            format!("texts/notes/{document}-2#1"),
            "texts/ef/issue#12".to_owned(),
            "music/Symphony#5".to_owned(),
            format!("{document}-2#1"),
        ];
        for file in others.iter().chain([&half]) {
            let path = dir.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "text").unwrap();
        }
        open_blobs(dir.path()).unwrap();
        assert!(!dir.path().join(half).exists());
        for other in others {
            assert!(dir.path().join(&other).exists(), "{other}");
        }
    }
}

mod spans;

use std::{collections::BTreeSet, fs::File, io, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use lkr_domain::{CharSpan, DocId, hex};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::{
    Error, Result,
    blob::{delete, put, put_file},
    verified,
};
use spans::SpanReading;

/// The extracted texts on a blob store, by document and revision.
#[derive(Debug, Clone)]
pub struct Texts {
    blobs: Arc<dyn ObjectStore>,
}

/// A text that was extracted from a file and is to be stored.
#[derive(Debug)]
pub struct ExtractedText {
    /// The text in UTF-8, followed by its encoded blocks.
    pub file: File,
    /// The length of the text in bytes.
    pub text_bytes: u64,
    /// The length of the encoded blocks in bytes.
    pub blocks_bytes: u64,
}

/// The SHA-256 of a text and of its blocks, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDigests {
    /// The digest of the text.
    pub text: String,
    /// The digest of its blocks, if it has some.
    pub blocks: Option<String>,
}

impl Texts {
    /// The folders that contain the blobs.
    pub const FOLDERS: [&str; 3] = [TEXTS, BLOCKS, NOTES];

    /// The texts on `blobs`.
    #[must_use]
    pub fn new(blobs: Arc<dyn ObjectStore>) -> Self {
        Self { blobs }
    }

    /// Stores a text. It is durable once this returns.
    pub async fn put(&self, doc_id: DocId, revision: u64, text: impl Into<Bytes>) -> Result<ContentDigests> {
        let text = text.into();
        let digests = ContentDigests { text: hex(&Sha256::digest(&text)), blocks: None };
        put(&self.blobs, &path(doc_id, revision), text).await?;
        Ok(digests)
    }

    /// Stores an extracted text and its blocks. Both are durable once this returns.
    pub async fn put_extracted(
        &self,
        doc_id: DocId,
        revision: u64,
        extracted: &ExtractedText,
    ) -> Result<ContentDigests> {
        let ExtractedText { file, text_bytes, blocks_bytes } = extracted;
        let (text_bytes, blocks_bytes) = (*text_bytes, *blocks_bytes);
        // The text is written first, so that blocks never exist without their text.
        let text = put_file(&self.blobs, &path(doc_id, revision), file, 0..text_bytes).await?;
        let blocks = text_bytes..text_bytes + blocks_bytes;
        let blocks = Some(put_file(&self.blobs, &blocks_path(doc_id, revision), file, blocks).await?);
        Ok(ContentDigests { text, blocks })
    }

    /// The encoded blocks of an extracted text.
    ///
    /// # Errors
    /// `Corrupt` if there are none, or their SHA-256 is not `sha256`.
    pub async fn blocks(&self, doc_id: DocId, revision: u64, sha256: Option<&str>) -> Result<Bytes> {
        let bytes = self.blobs.get(&blocks_path(doc_id, revision)).await?.bytes().await?;
        verified::check(&bytes, sha256, || format!("the blocks of document {doc_id}"))?;
        Ok(bytes)
    }

    /// Whether a text has blocks.
    pub async fn has_blocks(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        self.exists(&blocks_path(doc_id, revision)).await
    }

    /// Reads a text.
    ///
    /// # Errors
    /// `Corrupt` if there is none, because a record that names a revision has its text, or if its SHA-256 is not
    /// `sha256`.
    pub async fn get(&self, doc_id: DocId, revision: u64, sha256: Option<&str>) -> Result<String> {
        let bytes = self.blobs.get(&path(doc_id, revision)).await?.bytes().await?;
        verified::check(&bytes, sha256, || description(doc_id))?;
        String::from_utf8(bytes.into()).map_err(|e| Error::corrupt("read text", e))
    }

    /// Reads a text as a stream. If its SHA-256 is not `sha256`, a short text is refused at once, and the stream of a
    /// long one ends with an error.
    pub async fn parts(
        &self,
        doc_id: DocId,
        revision: u64,
        sha256: Option<&str>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let got = self.blobs.get(&path(doc_id, revision)).await?;
        if got.meta.size > MAX_BUFFERED_BYTES {
            let parts = got.into_stream().map_err(io::Error::other);
            return Ok(verified::parts(parts, sha256.map(str::to_owned), description(doc_id)).boxed());
        }
        let bytes = got.bytes().await?;
        verified::check(&bytes, sha256, || description(doc_id))?;
        Ok(stream::iter([Ok(bytes)]).boxed())
    }

    /// Reads ranges of a text, which are in order and do not overlap. The part of a range behind the end of the text is left out. Of
    /// a long text, no more is in memory than these ranges and the part that the store sends.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub async fn spans(
        &self,
        doc_id: DocId,
        revision: u64,
        sha256: Option<&str>,
        spans: Vec<CharSpan>,
    ) -> Result<Vec<String>> {
        let got = self.blobs.get(&path(doc_id, revision)).await?;
        let mut reading = SpanReading::new(spans);
        if got.meta.size <= MAX_BUFFERED_BYTES {
            reading = reading.read(got.bytes().await?).await?;
        } else {
            let mut parts = got.into_stream();
            while let Some(part) = parts.try_next().await? {
                reading = reading.read(part).await?;
            }
        }
        reading.finish(sha256, || description(doc_id))
    }

    /// The documents and revisions that have a text, blocks or notes.
    pub async fn stored(&self) -> Result<BTreeSet<(DocId, u64)>> {
        let mut stored = BTreeSet::new();
        for folder in Self::FOLDERS {
            let prefix = Path::from(folder);
            let mut list = self.blobs.list(Some(&prefix));
            while let Some(meta) = list.try_next().await? {
                stored.extend(meta.location.filename().and_then(parse));
            }
        }
        Ok(stored)
    }

    /// The length of a text in bytes.
    pub async fn length(&self, doc_id: DocId, revision: u64) -> Result<u64> {
        Ok(self.blobs.head(&path(doc_id, revision)).await?.size)
    }

    /// The paths of the blobs that a revision may have: its text, its blocks if it came as a file, and its notes if a
    /// language model summarized it.
    #[must_use]
    pub fn paths(doc_id: DocId, revision: u64) -> [String; 3] {
        [path(doc_id, revision), blocks_path(doc_id, revision), notes_path(doc_id, revision)]
            .map(String::from)
    }

    /// The notes that are stored beside a text, if there are any.
    pub async fn notes(&self, doc_id: DocId, revision: u64) -> Result<Option<Bytes>> {
        match self.blobs.get(&notes_path(doc_id, revision)).await {
            Ok(got) => Ok(Some(got.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Stores notes beside a text and replaces earlier notes. They are durable once this returns, and deleted with the
    /// text.
    pub async fn put_notes(&self, doc_id: DocId, revision: u64, notes: impl Into<Bytes>) -> Result<()> {
        put(&self.blobs, &notes_path(doc_id, revision), notes.into()).await
    }

    /// The length and the content of a blob that [`paths`](Self::paths) named; `None` if there is none.
    pub async fn blob(
        &self,
        path: &str,
    ) -> Result<Option<(u64, impl Stream<Item = io::Result<Bytes>> + Send + use<>)>> {
        match self.blobs.get(&Path::from(path)).await {
            Ok(got) => Ok(Some((got.meta.size, got.into_stream().map_err(io::Error::other)))),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Copies a text, its blocks and its notes to another revision. They are durable once this returns.
    ///
    /// # Errors
    /// `Corrupt` if there is no text, or its SHA-256 is not `sha256`.
    pub async fn copy(&self, doc_id: DocId, from: u64, to: u64, sha256: Option<&str>) -> Result<()> {
        let text = self.blobs.get(&path(doc_id, from)).await?.bytes().await?;
        verified::check(&text, sha256, || description(doc_id))?;
        put(&self.blobs, &path(doc_id, to), text).await?;
        for path in [blocks_path, notes_path] {
            match self.blobs.get(&path(doc_id, from)).await {
                Ok(found) => put(&self.blobs, &path(doc_id, to), found.bytes().await?).await.map(drop)?,
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Removes the blocks of a text, if there are any.
    pub async fn delete_blocks(&self, doc_id: DocId, revision: u64) -> Result<()> {
        delete(&self.blobs, &blocks_path(doc_id, revision)).await
    }

    /// Removes a text, its blocks and its notes, if there are any.
    pub async fn delete(&self, doc_id: DocId, revision: u64) -> Result<()> {
        delete(&self.blobs, &notes_path(doc_id, revision)).await?;
        delete(&self.blobs, &blocks_path(doc_id, revision)).await?;
        delete(&self.blobs, &path(doc_id, revision)).await
    }

    /// The documents and revisions whose text or notes were written before `time`.
    pub async fn written_before(&self, time: OffsetDateTime) -> Result<Vec<(DocId, u64)>> {
        let mut written = BTreeSet::new();
        for folder in [TEXTS, NOTES] {
            let prefix = Path::from(folder);
            let mut list = self.blobs.list(Some(&prefix));
            while let Some(meta) = list.try_next().await? {
                let revision = meta.location.filename().and_then(parse);
                written.extend(revision.filter(|_| latest_nanos(&meta) < time.unix_timestamp_nanos()));
            }
        }
        Ok(written.into_iter().collect())
    }

    /// Whether a text is stored.
    pub(crate) async fn has(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        self.exists(&path(doc_id, revision)).await
    }

    async fn exists(&self, path: &Path) -> Result<bool> {
        match self.blobs.head(path).await {
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            head => Ok(head.map(|_| true)?),
        }
    }

    /// Where they are, for people.
    #[must_use]
    pub fn place(&self) -> String {
        self.blobs.to_string()
    }

    /// Whether there are no texts at all.
    pub(crate) async fn is_empty(&self) -> Result<bool> {
        let prefix = Path::from(TEXTS);
        let mut list = self.blobs.list(Some(&prefix));
        while let Some(meta) = list.try_next().await? {
            if meta.location.filename().and_then(parse).is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The id of the knowledge base that claimed the texts.
    pub(crate) async fn owner(&self) -> Result<Option<String>> {
        match self.blobs.get(&Path::from(OWNER)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            got => Ok(Some(String::from_utf8_lossy(&got?.bytes().await?).trim().to_owned())),
        }
    }

    pub(crate) async fn set_owner(&self, id: &str) -> Result<()> {
        self.blobs.put(&Path::from(OWNER), id.to_owned().into()).await?;
        Ok(())
    }

    /// Checks that the blob store responds.
    pub async fn health(&self) -> Result<()> {
        match self.blobs.head(&Path::from("health")).await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The object with the id of the knowledge base whose texts these are.
const OWNER: &str = "knowledge-base";
const TEXTS: &str = "texts";
const BLOCKS: &str = "blocks";
const NOTES: &str = "notes";

/// Texts of at most this many bytes are read and verified before the stream begins.
const MAX_BUFFERED_BYTES: u64 = 1 << 20;

fn description(doc_id: DocId) -> String {
    format!("the text of document {doc_id}")
}

fn path(doc_id: DocId, revision: u64) -> Path {
    blob_path(TEXTS, doc_id, revision)
}

fn blocks_path(doc_id: DocId, revision: u64) -> Path {
    blob_path(BLOCKS, doc_id, revision)
}

fn notes_path(doc_id: DocId, revision: u64) -> Path {
    blob_path(NOTES, doc_id, revision)
}

/// `<folder>/<last two characters of the id>/<id>-<revision>`. The last characters of an id are random, so no folder
/// grows large.
fn blob_path(folder: &str, doc_id: DocId, revision: u64) -> Path {
    let id = doc_id.to_string();
    let shard: String = id.chars().skip(30).collect();
    Path::from(format!("{folder}/{shard}/{id}-{revision}"))
}

/// The latest time at which the blob can have been written, in nanoseconds since 1970. If the store reports whole
/// seconds, this is the end of that second.
fn latest_nanos(meta: &ObjectMeta) -> i128 {
    let fraction = match meta.last_modified.timestamp_subsec_nanos() {
        0 => 999_999_999,
        fraction => fraction,
    };
    i128::from(meta.last_modified.timestamp()) * 1_000_000_000 + i128::from(fraction)
}

fn parse(name: &str) -> Option<(DocId, u64)> {
    let (doc_id, revision) = name.split_once('-')?;
    Some((doc_id.parse().ok()?, revision.parse().ok()?))
}

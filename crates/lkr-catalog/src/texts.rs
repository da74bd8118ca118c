use std::{collections::BTreeSet, fs::File, io, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use lkr_domain::{DocId, hex};
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt, path::Path};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use crate::{
    Error, Result,
    blob::{delete, put, put_file},
    verified,
};

/// The extracted texts, by document and revision, on a blob store.
#[derive(Debug, Clone)]
pub struct Texts {
    blobs: Arc<dyn ObjectStore>,
}

/// A text that was extracted from a file, on its way.
#[derive(Debug)]
pub struct ExtractedText {
    /// The text in UTF-8, and right behind it its blocks.
    pub file: File,
    /// The length of the text.
    pub text_bytes: u64,
    /// The length of the blocks as they are written down.
    pub blocks_bytes: u64,
}

/// What a text and its blocks are known by again: their SHA-256, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentDigests {
    /// That of the text.
    pub text: String,
    /// That of its blocks, where it has some.
    pub blocks: Option<String>,
}

impl Texts {
    /// The folders that its blobs lie in.
    pub const FOLDERS: [&str; 3] = [TEXTS, BLOCKS, NOTES];

    /// The texts on `blobs`.
    #[must_use]
    pub fn new(blobs: Arc<dyn ObjectStore>) -> Self {
        Self { blobs }
    }

    /// Keeps a text; durable when it answers.
    pub async fn put(&self, doc_id: DocId, revision: u64, text: impl Into<Bytes>) -> Result<ContentDigests> {
        let text = text.into();
        let digests = ContentDigests { text: hex(&Sha256::digest(&text)), blocks: None };
        put(&self.blobs, &path(doc_id, revision), text).await?;
        Ok(digests)
    }

    /// Keeps a text that was extracted from a file, and its blocks beside it; durable when it answers.
    pub async fn put_extracted(
        &self,
        doc_id: DocId,
        revision: u64,
        extracted: &ExtractedText,
    ) -> Result<ContentDigests> {
        let ExtractedText { file, text_bytes, blocks_bytes } = extracted;
        let (text_bytes, blocks_bytes) = (*text_bytes, *blocks_bytes);
        // The text first: what has blocks has a text, by which it is found.
        let text = put_file(&self.blobs, &path(doc_id, revision), file, 0..text_bytes).await?;
        let blocks = text_bytes..text_bytes + blocks_bytes;
        let blocks = Some(put_file(&self.blobs, &blocks_path(doc_id, revision), file, blocks).await?);
        Ok(ContentDigests { text, blocks })
    }

    /// The blocks of a text that was extracted from a file, as they were written down, where their SHA-256 is this.
    pub async fn blocks(&self, doc_id: DocId, revision: u64, sha256: Option<&str>) -> Result<Bytes> {
        let bytes = self.blobs.get(&blocks_path(doc_id, revision)).await?.bytes().await?;
        verified::check(&bytes, sha256, || format!("what is known of the text of document {doc_id}"))?;
        Ok(bytes)
    }

    /// Whether a text has blocks.
    pub async fn has_blocks(&self, doc_id: DocId, revision: u64) -> Result<bool> {
        match self.blobs.head(&blocks_path(doc_id, revision)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            head => Ok(head.map(|_| true)?),
        }
    }

    /// A text, where its SHA-256 is this. That there is none is an error: a record that names a revision has its text.
    pub async fn get(&self, doc_id: DocId, revision: u64, sha256: Option<&str>) -> Result<String> {
        let bytes = self.blobs.get(&path(doc_id, revision)).await?.bytes().await?;
        verified::check(&bytes, sha256, || described(doc_id))?;
        String::from_utf8(bytes.into()).map_err(|e| Error::corrupt("read text", e))
    }

    /// A text part by part, as it is read. One whose SHA-256 is not this ends with an error; a short one is refused
    /// before it begins.
    pub async fn parts(
        &self,
        doc_id: DocId,
        revision: u64,
        sha256: Option<&str>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let got = self.blobs.get(&path(doc_id, revision)).await?;
        if got.meta.size > MAX_BUFFERED_BYTES {
            let parts = got.into_stream().map_err(io::Error::other);
            return Ok(verified::parts(parts, sha256.map(str::to_owned), described(doc_id)).boxed());
        }
        let bytes = got.bytes().await?;
        verified::check(&bytes, sha256, || described(doc_id))?;
        Ok(stream::iter([Ok(bytes)]).boxed())
    }

    /// All texts that are stored, and all blocks, by document and revision.
    pub async fn stored(&self) -> Result<BTreeSet<(DocId, u64)>> {
        let mut stored = BTreeSet::new();
        for kind in Self::FOLDERS {
            let prefix = Path::from(kind);
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

    /// The blobs that a revision may have, by their paths: its text, where it came as a file its blocks, and where a
    /// language model described it what that said.
    #[must_use]
    pub fn paths(doc_id: DocId, revision: u64) -> [String; 3] {
        [path(doc_id, revision), blocks_path(doc_id, revision), notes_path(doc_id, revision)]
            .map(String::from)
    }

    /// What was noted beside a text; `None` where nothing was.
    pub async fn notes(&self, doc_id: DocId, revision: u64) -> Result<Option<Bytes>> {
        match self.blobs.get(&notes_path(doc_id, revision)).await {
            Ok(got) => Ok(Some(got.bytes().await?)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Notes something beside a text, in the place of what was noted before; durable when it answers. It goes with the
    /// text.
    pub async fn put_notes(&self, doc_id: DocId, revision: u64, notes: impl Into<Bytes>) -> Result<()> {
        put(&self.blobs, &notes_path(doc_id, revision), notes.into()).await
    }

    /// A blob that [`paths`](Self::paths) named: its length, and its content as it is read. `None` where there is none.
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

    /// Removes the blocks of a text; nothing where there are none.
    pub async fn delete_blocks(&self, doc_id: DocId, revision: u64) -> Result<()> {
        delete(&self.blobs, &blocks_path(doc_id, revision)).await
    }

    /// Removes a text, its blocks and its notes; nothing where there is none.
    pub async fn delete(&self, doc_id: DocId, revision: u64) -> Result<()> {
        delete(&self.blobs, &notes_path(doc_id, revision)).await?;
        delete(&self.blobs, &blocks_path(doc_id, revision)).await?;
        delete(&self.blobs, &path(doc_id, revision)).await
    }

    /// The revisions of which a text or notes were written before `time`, by document.
    pub async fn written_before(&self, time: OffsetDateTime) -> Result<Vec<(DocId, u64)>> {
        let mut written = BTreeSet::new();
        for kind in [TEXTS, NOTES] {
            let prefix = Path::from(kind);
            let mut list = self.blobs.list(Some(&prefix));
            while let Some(meta) = list.try_next().await? {
                let named = meta.location.filename().and_then(parse);
                written.extend(named.filter(|_| latest_nanos(&meta) < time.unix_timestamp_nanos()));
            }
        }
        Ok(written.into_iter().collect())
    }

    /// Whether the blob store answers.
    pub async fn health(&self) -> Result<()> {
        match self.blobs.head(&Path::from("health")).await {
            Ok(_) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

const TEXTS: &str = "texts";
const BLOCKS: &str = "blocks";
const NOTES: &str = "notes";

/// A text of so many bytes is read before any of it is handed out.
const MAX_BUFFERED_BYTES: u64 = 1 << 20;

fn described(doc_id: DocId) -> String {
    format!("the text of document {doc_id}")
}

fn path(doc_id: DocId, revision: u64) -> Path {
    named(TEXTS, doc_id, revision)
}

fn blocks_path(doc_id: DocId, revision: u64) -> Path {
    named(BLOCKS, doc_id, revision)
}

fn notes_path(doc_id: DocId, revision: u64) -> Path {
    named(NOTES, doc_id, revision)
}

/// `<kind>/<last two characters of the id>/<id>-<revision>`: the last ones are random, so no folder grows large.
fn named(kind: &str, doc_id: DocId, revision: u64) -> Path {
    let id = doc_id.to_string();
    let fan: String = id.chars().skip(30).collect();
    Path::from(format!("{kind}/{fan}/{id}-{revision}"))
}

/// The latest moment at which the blob can have been written, in nanoseconds since 1970: a store that knows whole
/// seconds alone may mean any moment of one.
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

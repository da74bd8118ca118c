//! The texts and originals of revisions, as a backup reads them.

use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, TryStreamExt, stream::BoxStream};
use lkr_catalog::{Originals, ReferencedRevision, Texts};

use super::{BLOBS, UPLOADS};

/// The length up to which a file is read at once.
const READ_WHOLE: u64 = 1 << 20;

/// A file of a revision.
pub(super) struct RevisionFile {
    pub(super) place: Place,
    /// Its SHA-256, if it was recorded.
    pub(super) sha256: Option<String>,
    /// Whether its absence is a problem.
    is_needed: bool,
}

/// Where a file is: its path in its own storage.
pub(super) enum Place {
    Blob(String),
    Original(String),
}

/// What reading a file gave.
pub(super) enum Content {
    /// It does not exist and is not needed.
    Absent,
    /// It cannot be read, or is missing.
    Unreadable,
    Whole(Bytes),
    /// It is too long to be read at once.
    Long,
}

impl RevisionFile {
    /// The files of a revision.
    pub(super) fn all_of(revision: &ReferencedRevision) -> impl Iterator<Item = Self> {
        let [text, blocks, notes] = Texts::paths(revision.doc_id, revision.revision);
        let blob = |path, sha256: &Option<String>, is_needed| Self {
            place: Place::Blob(path),
            sha256: sha256.clone(),
            is_needed,
        };
        let original = revision.original.clone().map(|path| Self {
            place: Place::Original(path),
            sha256: revision.original_sha256.clone(),
            is_needed: true,
        });
        let blobs = [
            blob(text, &revision.text_sha256, true),
            blob(blocks, &revision.blocks_sha256, false),
            blob(notes, &None, false),
        ];
        blobs.into_iter().chain(original)
    }

    pub(super) fn archive_path(&self) -> String {
        match &self.place {
            Place::Blob(path) => format!("{BLOBS}/{path}"),
            Place::Original(path) => format!("{UPLOADS}/{path}"),
        }
    }
}

type ByteStream = BoxStream<'static, io::Result<Bytes>>;

/// Where the files of revisions are.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub(super) texts: Texts,
    pub(super) originals: Originals,
}

impl Files {
    /// The length and the content of a file; `None` if it does not exist.
    pub(super) async fn open(&self, place: &Place) -> lkr_catalog::Result<Option<(u64, ByteStream)>> {
        match place {
            Place::Blob(path) => {
                let found = self.texts.blob(path).await?;
                Ok(found.map(|(length, content)| (length, content.boxed())))
            }
            Place::Original(path) => {
                let Some(original) = self.originals.get(path).await? else { return Ok(None) };
                let length = original.size_bytes;
                Ok(Some((length, original.read(0..length).await?.boxed())))
            }
        }
    }

    /// Reads a file, unless it is long.
    pub(super) async fn read(self, file: RevisionFile) -> (RevisionFile, Content) {
        let content = match self.open(&file.place).await {
            Ok(Some((length, _))) if length > READ_WHOLE => Content::Long,
            Ok(Some((length, content))) => match content.try_collect::<BytesMut>().await {
                Ok(bytes) if bytes.len() as u64 == length => Content::Whole(bytes.freeze()),
                Ok(_) | Err(_) => Content::Unreadable,
            },
            Ok(None) if !file.is_needed => Content::Absent,
            Ok(None) | Err(_) => Content::Unreadable,
        };
        (file, content)
    }
}

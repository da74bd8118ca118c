//! Restoring records from points and texts.

use lkr_catalog::{Error, ErrorKind, RestoredContent, Result, Stored, kept_record, restore_document};
use lkr_domain::{Counts, DocId, Document, Layer, hex};
use lkr_vectors::{Collection, Condition, Filter};
use tokio::task::spawn_blocking;

use crate::{lost::read_l1, ports::Ports, repair::BoxError, spaces::close_default_space};

/// A document whose record is to be restored.
#[derive(Debug, Clone, PartialEq)]
pub struct LostDocument {
    /// The document, as its points and its text describe it.
    pub document: Document,
    /// The older record that it has.
    pub before: Option<Stored<Document>>,
    /// Whether its points have the dense vectors that their collections require.
    pub has_dense: bool,
    /// Whether its points keep the whole record; those of earlier versions do not.
    pub is_complete: bool,
}

impl LostDocument {
    /// Reads a revision; `None` if it has no L1 point any more.
    ///
    /// # Errors
    /// `Corrupt` if the point or the text is missing or damaged.
    pub(crate) async fn read(
        ports: &Ports,
        doc_id: DocId,
        revision: u64,
        before: Option<Stored<Document>>,
    ) -> Result<Option<Self>> {
        let Some(l1) = read_l1(ports, doc_id, revision).await? else { return Ok(None) };
        let kept = kept_record(&l1.payload);
        let sha256 = kept.as_ref().map(|kept| kept.content_sha256.as_str());
        let text = ports.texts.get(doc_id, revision, sha256).await?;
        let counts = match &kept {
            Some(kept) => kept.counts,
            None => counts_of(ports, doc_id, revision).await?,
        };
        let content = spawn_blocking(move || content_of(&text, counts));
        let content = content.await.map_err(|e| Error::new(ErrorKind::Internal, "restore document", e))?;
        let spec = ports.vectors.describe(&Layer::L1.into()).await?;
        let has_dense = l1.dense.is_some() || spec.is_none_or(|spec| spec.dense.is_none());
        let document = restore_document(&l1, content)?;
        Ok(Some(Self { document, before, has_dense, is_complete: kept.is_some() }))
    }

    pub(crate) const fn remedy(&self) -> &'static str {
        match self.is_complete {
            true => {
                "the record is restored from the points and the text; nothing shows that the document was deleted"
            }
            false => {
                "the record is restored from the points and the text, but without keywords and the creator's account, \
                 which earlier versions did not keep; nothing shows that the document was deleted"
            }
        }
    }

    /// Writes the record.
    pub(crate) async fn restore(&self, ports: &Ports) -> Result<(), BoxError> {
        Ok(ports.catalog.restore(self.before.as_ref(), &self.document, self.has_dense).await?)
    }
}

/// Ends the restoration of a store without any record.
pub(crate) async fn end_restoration(ports: &Ports) -> Result<(), BoxError> {
    let Some(restorer) = &ports.restorer else { return Ok(()) };
    close_default_space(&restorer.spaces).await?;
    Ok(ports.catalog.mark_restored(restorer.marks.clone()).await?)
}

fn content_of(text: &str, counts: Counts) -> RestoredContent {
    RestoredContent {
        counts,
        char_count: u32::try_from(text.chars().count()).unwrap_or(u32::MAX),
        content_sha256: sha256_of(text),
        fingerprint: lkr_ingest::fingerprint(text),
    }
}

fn sha256_of(text: &str) -> String {
    use sha2::Digest as _;
    hex(&sha2::Sha256::digest(text))
}

/// The number of points that a revision has now.
async fn counts_of(ports: &Ports, doc_id: DocId, revision: u64) -> Result<Counts> {
    let of_revision = Filter::only(Condition::Revision(doc_id, revision));
    let mut counts = [0; 4];
    for (count, layer) in counts.iter_mut().zip(Layer::ALL) {
        *count = ports.vectors.count(&Collection::from(layer), &of_revision).await?;
    }
    let [l1, l2, l3, chunks] = counts;
    Ok(Counts { l1, l2, l3, chunks })
}

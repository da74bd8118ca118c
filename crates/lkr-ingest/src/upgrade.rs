//! What a store of an earlier version lacks.

use lkr_catalog::Stored;
use lkr_domain::{DocId, Document};

use crate::{Result, fingerprint::fingerprint, ingestor::Inner};

/// How many records are read at a time.
const PAGE: usize = 100;

/// Gives documents fingerprints that an earlier version brought in without. One whose text cannot be read keeps none,
/// and no other from having one.
pub(crate) async fn fingerprints(inner: &Inner) -> Result<()> {
    let catalog = &inner.ports.catalog;
    if !catalog.lacks_fingerprints().await? {
        return Ok(());
    }
    let (mut after, mut done) = (None, 0_u64);
    loop {
        let page = catalog.stored_documents(after, PAGE).await?;
        for document in page.iter().filter(|document| document.value.fingerprint.is_none()) {
            match print(inner, document).await {
                Ok(()) => done += 1,
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => {
                    let doc_id = document.value.doc_id;
                    tracing::warn!(%doc_id, %error, "a document cannot be told from its duplicates");
                }
            }
        }
        match page.last() {
            Some(last) if page.len() == PAGE => after = Some::<DocId>(last.value.doc_id),
            _ => break,
        }
    }
    catalog.mark_fingerprinted().await?;
    if done > 0 {
        tracing::info!(documents = done, "documents of an earlier version got fingerprints");
    }
    Ok(())
}

/// What the text of a document is known by again.
fn known_by(document: &Document) -> Option<&str> {
    Some(document.content_sha256.as_str()).filter(|sha256| !sha256.is_empty())
}

/// One that changes meanwhile is replaced, which brings a fingerprint, or changed by hand: then it is tried again.
async fn print(inner: &Inner, document: &Stored<Document>) -> Result<()> {
    let Document { doc_id, revision, .. } = document.value;
    let text = inner.ports.texts.get(doc_id, revision, known_by(&document.value)).await?;
    let fingerprint = tokio::task::spawn_blocking(move || fingerprint(&text)).await?;
    let mut now = Some(document.clone());
    while let Some(document) =
        now.filter(|now| now.value.fingerprint.is_none() && now.value.revision == revision)
    {
        match inner.ports.catalog.fingerprint(&document, fingerprint.clone()).await {
            Err(error) if error.kind() == lkr_catalog::ErrorKind::Conflict => {}
            printed => {
                printed?;
                let value = Document { fingerprint: Some(fingerprint), ..document.value };
                inner.twins.published(&value);
                return Ok(());
            }
        }
        now = inner.ports.catalog.document(doc_id).await?;
    }
    Ok(())
}

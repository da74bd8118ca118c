//! Adds the fingerprints that documents of an earlier version lack.

use lkr_catalog::Stored;
use lkr_domain::{DocId, Document};

use crate::{Error, Ports, Result, duplicate_index::DuplicateIndex, fingerprint::fingerprint};

/// The number of records that are read at a time.
const PAGE: usize = 100;

/// Adds fingerprints to documents that lack one. A document whose text is unreadable is skipped.
pub(crate) async fn add_fingerprints(ports: &Ports, duplicates: &DuplicateIndex) -> Result<()> {
    let catalog = &ports.catalog;
    if !catalog.lacks_fingerprints().await? {
        return Ok(());
    }
    let (mut after, mut done) = (None, 0_u64);
    loop {
        let page = catalog.stored_documents(after, PAGE).await?;
        for document in page.iter().filter(|document| document.value.fingerprint.is_none()) {
            match add_fingerprint(ports, duplicates, &document.value).await {
                Ok(()) => done += 1,
                Err(error) if error.is_retryable() => return Err(error),
                Err(error) => {
                    let doc_id = document.value.doc_id;
                    tracing::warn!(%doc_id, %error, "cannot read a document's text; its duplicates are not detected");
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
        tracing::info!(documents = done, "added fingerprints to documents of an earlier version");
    }
    Ok(())
}

/// A document that is replaced meanwhile gets its fingerprint from its task.
async fn add_fingerprint(ports: &Ports, duplicates: &DuplicateIndex, document: &Document) -> Result<()> {
    let (doc_id, revision) = (document.doc_id, document.revision);
    let sha256 = Some(document.content_sha256.as_str()).filter(|sha256| !sha256.is_empty());
    let text = ports.texts.get(doc_id, revision, sha256).await?;
    let fingerprint = tokio::task::spawn_blocking(move || fingerprint(&text)).await?;
    let attempt = || async {
        let lacks_one =
            |now: &Stored<Document>| now.value.fingerprint.is_none() && now.value.revision == revision;
        let Some(document) = ports.catalog.document(doc_id).await?.filter(lacks_one) else { return Ok(()) };
        ports.catalog.fingerprint(&document, fingerprint.clone()).await?;
        duplicates.published(&Document { fingerprint: Some(fingerprint.clone()), ..document.value });
        Ok::<_, Error>(())
    };
    ports.catalog.retry_on_conflict("add fingerprint", attempt).await
}

//! Gives the points of all documents the tags that this version derives from their records.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use lkr_catalog::{Stored, tags_of};
use lkr_domain::Document;
use lkr_vectors::{Condition, Filter};

use crate::{Ports, Result, collections::set_tags_everywhere};

/// The number of records that are read at a time.
const PAGE: usize = 1000;

/// Changes at once. A store that commits groups writes them together.
const CONCURRENT: usize = 500;

/// Sets the tags of the points of every live document from its record. For stores of a version with other tags; it must run
/// before documents are changed, because it does not wait for changes. It may be repeated.
///
/// # Errors
/// Errors of the stores.
pub(crate) async fn refresh_tags(ports: &Ports) -> Result<()> {
    let mut after = None;
    loop {
        let page = ports.catalog.stored_documents(after, PAGE).await?;
        after = page.last().map(|last| last.value.doc_id);
        let is_last = page.len() < PAGE;
        let changes = page.into_iter().map(|Stored { value, .. }| refresh(ports, value));
        stream::iter(changes).buffer_unordered(CONCURRENT).try_collect::<()>().await?;
        if is_last {
            return Ok(());
        }
    }
}

async fn refresh(ports: &Ports, document: Document) -> Result<()> {
    let filter = Filter::only(Condition::Revision(document.doc_id, document.revision));
    set_tags_everywhere(&*ports.vectors, &filter, &tags_of(&document)).await
}

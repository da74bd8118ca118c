//! The index of live documents by space. Listings and statistics of some spaces read their entries alone, so what other
//! spaces contain costs them nothing.

use lkr_domain::{Counts, DocId, Document, Scope, SpaceName};
use lkr_state::{Expect, Record, ScanOrder, Write};

use crate::{Catalog, Error, Result, key, task_index::TaskGroup};

/// What statistics need of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpaceEntry {
    pub(crate) counts: Counts,
    pub(crate) category: String,
}

/// The entry of a document.
pub(crate) fn entry(document: &Document) -> SpaceEntry {
    SpaceEntry { counts: document.counts, category: document.category.clone() }
}

/// The write that adds a document to its space, or updates its entry.
pub(crate) fn put(document: &Document) -> Write {
    let SpaceEntry { counts: Counts { l1, l2, l3, chunks }, category } = entry(document);
    let value = format!("{l1} {l2} {l3} {chunks} {category}");
    Write::put(key::space_document(&document.space, document.doc_id), Expect::Any, value)
}

/// The write that removes a document from its space.
pub(crate) fn delete(document: &Document) -> Write {
    Write::delete(key::space_document(&document.space, document.doc_id), Expect::Any)
}

/// Decodes an entry; `None` if it is damaged.
pub(crate) fn decode(value: &[u8]) -> Option<SpaceEntry> {
    let mut parts = std::str::from_utf8(value).ok()?.splitn(5, ' ');
    let mut number = || parts.next()?.parse().ok();
    let counts = Counts { l1: number()?, l2: number()?, l3: number()?, chunks: number()? };
    Some(SpaceEntry { counts, category: parts.next()?.to_owned() })
}

/// The space and the document of an entry's key.
pub(crate) fn parse_key(key: &str) -> Option<(SpaceName, DocId)> {
    let (space, doc_id) = key.strip_prefix(key::SPACE_DOCUMENTS)?.split_once('/')?;
    Some((SpaceName::new(space)?, doc_id.parse().ok()?))
}

impl Catalog {
    /// A live document of the scope. The indexes of the scope's spaces are read first, so a document of another space takes
    /// the same reads as one that does not exist.
    pub async fn document_in(&self, scope: &Scope, doc_id: DocId) -> Result<Option<Document>> {
        if let Scope::Spaces(spaces) = scope {
            let keys: Vec<_> = spaces.iter().map(|space| key::space_document(space, doc_id)).collect();
            if self.state.get_many(&keys).await?.iter().all(Option::is_none) {
                return Ok(None);
            }
        }
        let document = self.document(doc_id).await?.map(|document| document.value);
        Ok(document.filter(|document| scope.contains(&document.space)))
    }

    /// The number of live documents in a space.
    pub async fn count_in_space(&self, space: &SpaceName) -> Result<u64> {
        self.count_keys(&key::space_documents(space)).await
    }

    /// The number of unfinished tasks in a space.
    pub async fn unfinished_in_space(&self, space: &SpaceName) -> Result<u64> {
        let list = key::tasks_in_space(space);
        self.count_keys(&key::tasks_in_group(TaskGroup::Unfinished.name(), &list)).await
    }

    /// The number of keys with a prefix.
    async fn count_keys(&self, prefix: &str) -> Result<u64> {
        const PAGE: usize = 1_000;
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.state.scan(prefix, after.as_deref(), ScanOrder::Ascending, PAGE).await?;
            count += page.len() as u64;
            if page.len() < PAGE {
                return Ok(count);
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
        }
    }

    /// Up to `limit` live documents of a space, the oldest first.
    pub async fn documents_in_space(&self, space: &SpaceName, limit: usize) -> Result<Vec<DocId>> {
        let prefix = key::space_documents(space);
        let records = self.state.scan(&prefix, None, ScanOrder::Ascending, limit).await?;
        let read = |(key, _): &(String, Record)| {
            let doc_id = key.strip_prefix(&prefix).unwrap_or_default().parse();
            doc_id.map_err(|e| Error::corrupt("read space index", e))
        };
        records.iter().map(read).collect()
    }
}

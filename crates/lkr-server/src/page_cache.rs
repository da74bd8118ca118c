//! Pages that were shown before, in bounded memory. It checks no rights: its callers do, before each use.

use std::sync::Arc;

use bytes::Bytes;
use lkr::{DocId, Document, files::PlacedText};
use moka::{policy::EvictionPolicy, sync::Cache};

/// The memory of all cached pages. Chosen, not measured: about 200 images of 1,000 pixels.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// The memory of an entry besides its content.
const ENTRY_BYTES: usize = 256;

/// What is shown of a page of a document's revision.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct PageKey {
    doc_id: DocId,
    revision: u64,
    page: u32,
    /// The width of its image; `None` for the places of its text.
    width: Option<u32>,
}

/// What a page looks like, or where its text is.
#[derive(Debug, Clone)]
pub(crate) enum PageView {
    Image(Bytes),
    Places(Arc<PlacedText>),
}

/// The pages that were shown last.
#[derive(Debug)]
pub(crate) struct PageCache(Cache<PageKey, PageView>);

impl PageKey {
    pub(crate) fn image(document: &Document, page: u32, width: u32) -> Self {
        Self { width: Some(width), ..Self::places(document, page) }
    }

    pub(crate) const fn places(document: &Document, page: u32) -> Self {
        Self { doc_id: document.doc_id, revision: document.revision, page, width: None }
    }
}

impl PageView {
    fn size(&self) -> u32 {
        let content = match self {
            Self::Image(png) => png.len(),
            Self::Places(text) => size_of_val(text.letters.as_slice()),
        };
        u32::try_from(ENTRY_BYTES.saturating_add(content)).unwrap_or(u32::MAX)
    }
}

impl Default for PageCache {
    fn default() -> Self {
        let cache = Cache::builder()
            .max_capacity(MAX_BYTES)
            .weigher(|_, view: &PageView| view.size())
            .eviction_policy(EvictionPolicy::lru());
        Self(cache.build())
    }
}

impl PageCache {
    pub(crate) fn get(&self, key: &PageKey) -> Option<PageView> {
        self.0.get(key)
    }

    pub(crate) fn insert(&self, key: PageKey, view: PageView) {
        self.0.insert(key, view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_pages_take_bounded_memory() {
        let cache = PageCache::default();
        let key =
            |page| PageKey { doc_id: DocId::from_bytes([7; 16]), revision: 1, page, width: Some(1_000) };
        for page in 0..100 {
            cache.insert(key(page), PageView::Image(Bytes::from(vec![0; 1024 * 1024])));
        }
        cache.0.run_pending_tasks();
        assert!(cache.0.weighted_size() <= MAX_BYTES && cache.0.entry_count() > 20);
        assert!(cache.get(&key(99)).is_some() && cache.get(&key(0)).is_none());
    }
}

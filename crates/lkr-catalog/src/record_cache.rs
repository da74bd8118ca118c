//! Records of documents that were read a short time ago. A search looks at the records of hundreds of documents, and the next one
//! at many of the same.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use lkr_domain::DocId;

use crate::DocumentRecord;

/// The memory of all records together, in bytes. *Judgement*: enough for some ten thousand documents with little metadata.
const MAX_BYTES: usize = 8 << 20;
/// What a record takes beside its stored form: its entry in the map, and the name of its space.
const ENTRY_BYTES: usize = 200;
/// Records are read again after this time, in case that the store lost its latest records with their generations, and counts these
/// anew.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The record of a live document; `None` for a document that is not live.
pub(crate) type ReadRecord = Option<Arc<DocumentRecord>>;

/// The records of some documents at one generation of the catalog, which counts all changes of records that searches can show. The
/// records of another generation take their place, but not before two reads in a row have found it: while documents are being
/// added, none would be read a second time.
#[derive(Debug, Default)]
pub(crate) struct RecordCache(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    generation: Option<u64>,
    /// When the first of the records was read.
    since: Option<Instant>,
    records: HashMap<DocId, ReadRecord>,
    bytes: usize,
}

impl RecordCache {
    /// Whether no record is known, so that it is not worth to ask for the generation first.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().records.is_empty()
    }

    /// Those of the documents' records that are known and were read at this generation, in the order of `ids`.
    pub(crate) fn at(&self, generation: u64, ids: &[DocId]) -> Vec<Option<ReadRecord>> {
        let known = self.lock();
        let is_fresh = known.since.is_some_and(|since| since.elapsed() < MAX_AGE);
        if known.generation != Some(generation) || !is_fresh {
            return vec![None; ids.len()];
        }
        ids.iter().map(|id| known.records.get(id).cloned()).collect()
    }

    /// Keeps records that were read in one step with this generation, as far as there is room.
    pub(crate) fn keep<'r>(&self, generation: u64, records: impl Iterator<Item = (DocId, &'r ReadRecord)>) {
        let mut known = self.lock();
        let is_fresh = known.since.is_none_or(|since| since.elapsed() < MAX_AGE);
        if known.generation != Some(generation) || !is_fresh {
            *known = Known { generation: Some(generation), ..Known::default() };
            return;
        }
        known.since.get_or_insert_with(Instant::now);
        for (doc_id, record) in records {
            let bytes = ENTRY_BYTES + record.as_ref().map_or(0, |record| record.bytes());
            if known.bytes + bytes > MAX_BYTES {
                break;
            }
            if known.records.insert(doc_id, record.clone()).is_none() {
                known.bytes += bytes;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(cache: &RecordCache, generation: u64, id: DocId) -> bool {
        cache.at(generation, &[id]) == [Some(None)]
    }

    #[test]
    fn records_are_kept_once_a_generation_was_found_twice() {
        let (cache, id) = (RecordCache::default(), DocId::new());
        let keep = |generation| cache.keep(generation, std::iter::once((id, &None)));
        keep(7);
        assert!(cache.is_empty() && !known(&cache, 7, id));
        keep(7);
        assert!(!cache.is_empty() && known(&cache, 7, id));
        assert!(!known(&cache, 8, id), "a record of another generation");
        keep(8);
        assert!(!known(&cache, 7, id) && !known(&cache, 8, id));
    }

    #[test]
    fn records_that_are_no_longer_new_are_read_again() {
        let (cache, id) = (RecordCache::default(), DocId::new());
        (0..2).for_each(|_| cache.keep(7, std::iter::once((id, &None))));
        cache.lock().since = Instant::now().checked_sub(MAX_AGE);
        assert!(!known(&cache, 7, id));
    }

    #[test]
    fn records_have_a_maximum_of_memory() {
        let (cache, none) = (RecordCache::default(), None);
        let ids: Vec<DocId> = (0..MAX_BYTES / ENTRY_BYTES + 1).map(|_| DocId::new()).collect();
        (0..2).for_each(|_| cache.keep(7, ids.iter().map(|&id| (id, &none))));
        let known = cache.at(7, &ids);
        assert_eq!(known.iter().flatten().count(), ids.len() - 1);
    }
}

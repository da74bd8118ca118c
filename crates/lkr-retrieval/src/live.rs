//! Dropping the hits that no live document record covers.

use std::{collections::BTreeSet, sync::Arc};

use lkr_catalog::{Catalog, DocumentRecord, DocumentTitle};
use lkr_domain::{DocId, Document};
use lkr_vectors::PointOrigin;

use crate::{
    Result, SearchRequest,
    candidate::Candidate,
    ids::{IdMap, IdSet},
    legs::{Leg, Legs},
};

/// Documents by id.
pub(crate) type Documents = IdMap<DocId, Document>;
/// Titles of documents by id.
pub(crate) type Titles = IdMap<DocId, DocumentTitle>;
/// Records that were read, by document; `None` for documents without one that the request may show.
pub(crate) type ReadRecords = IdMap<DocId, Option<Arc<DocumentRecord>>>;
/// Document records by id.
pub(crate) type DocumentRecords = IdMap<DocId, Arc<DocumentRecord>>;

/// The records behind the hits of a batch, and the hits that were dropped.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// The records of the live documents that the hits belong to.
    pub(crate) records: DocumentRecords,
    /// The revisions whose hits were dropped.
    pub(crate) stale: BTreeSet<(DocId, u64)>,
    /// Whether a full leg lost more than half of its hits, so that live points may rank behind the stale ones.
    pub(crate) starved: bool,
    /// Whether a stale hit belongs to a document that is live in another revision, or a document changed its revision or
    /// went between two batches.
    pub(crate) replaced: bool,
}

impl Liveness {
    /// Adds those of a later batch, whose records are newer.
    pub(crate) fn merge(&mut self, later: Self) {
        self.replaced |= later.replaced;
        self.starved |= later.starved;
        for (doc_id, _) in later.stale.iter().filter(|(doc_id, _)| !later.records.contains_key(doc_id)) {
            self.replaced |= self.records.remove(doc_id).is_some();
        }
        for (doc_id, record) in later.records {
            let revision = record.revision();
            let before = self.records.insert(doc_id, record);
            self.replaced |= before.is_some_and(|before| before.revision() != revision);
        }
        self.stale.extend(later.stale);
    }

    /// Drops the hits of earlier batches that are not live by the records of later ones.
    pub(crate) fn drop_replaced(&self, legs: &mut Legs) {
        if !self.replaced {
            return;
        }
        for leg in &mut legs.all {
            leg.hits.retain(|hit| is_live(&self.records, revision(&hit.origin)));
        }
    }

    /// The documents of candidates.
    pub(crate) fn documents_of(&self, candidates: &[Candidate]) -> Result<Documents> {
        self.records_of(candidates).map(|(id, record)| Ok((id, record.document()?))).collect()
    }

    /// The titles of the documents of candidates, which is less to decode.
    pub(crate) fn titles_of(&self, candidates: &[Candidate]) -> Result<Titles> {
        self.records_of(candidates).map(|(id, record)| Ok((id, record.title()?))).collect()
    }

    fn records_of(&self, candidates: &[Candidate]) -> impl Iterator<Item = (DocId, &Arc<DocumentRecord>)> {
        let ids: BTreeSet<DocId> = candidates.iter().map(|candidate| candidate.origin.doc_id).collect();
        ids.into_iter().filter_map(|id| Some((id, self.records.get(&id)?)))
    }
}

/// Drops the hits that do not belong to the recorded revision of a live document in the scope that the filters match.
/// Records are read after the hits, so that a document is never shown after its delete has completed, in a space that it
/// has left, or with fields that it no longer has. `read` are those that were read before.
pub(crate) async fn retain_live(
    catalog: &Catalog,
    request: &SearchRequest,
    legs: &mut Legs,
    read: ReadRecords,
) -> Result<Liveness> {
    // Many hits are of one revision.
    let revisions: IdSet<(DocId, u64)> =
        legs.all.iter().flat_map(|leg| &leg.hits).map(|hit| revision(&hit.origin)).collect();
    let records = records(catalog, request, revisions.iter().copied(), read).await?;
    let stale: BTreeSet<_> = revisions.into_iter().filter(|&revision| !is_live(&records, revision)).collect();
    let replaced = stale.iter().any(|(doc_id, _)| records.contains_key(doc_id));
    let mut starved = false;
    if !stale.is_empty() {
        legs.all.iter_mut().for_each(|leg| starved |= drop_stale(leg, &stale));
    }
    Ok(Liveness { records, stale, starved, replaced })
}

/// Removes from `stale` the revisions that became live, and returns whether none did.
pub(crate) async fn retain_stale(
    catalog: &Catalog,
    request: &SearchRequest,
    stale: &mut Vec<(DocId, u64)>,
) -> Result<bool> {
    let records = records(catalog, request, stale.iter().copied(), ReadRecords::default()).await?;
    let before = stale.len();
    stale.retain(|&revision| !is_live(&records, revision));
    Ok(stale.len() == before)
}

/// The records of these documents that are live and that the request may show, without reading those in `read` again.
async fn records(
    catalog: &Catalog,
    request: &SearchRequest,
    revisions: impl Iterator<Item = (DocId, u64)>,
    mut read: ReadRecords,
) -> Result<DocumentRecords> {
    let unread = revisions.map(|(doc_id, _)| doc_id).filter(|id| !read.contains_key(id));
    let rest = read_records(catalog, request, unread).await?;
    read.extend(rest);
    Ok(read.into_iter().filter_map(|(id, record)| Some((id, record?))).collect())
}

/// Reads the records of these documents, without those that the request may not show.
pub(crate) async fn read_records(
    catalog: &Catalog,
    request: &SearchRequest,
    documents: impl Iterator<Item = DocId>,
) -> Result<ReadRecords> {
    let ids: BTreeSet<DocId> = documents.collect();
    let ids: Vec<DocId> = ids.into_iter().collect();
    let records = catalog.document_records(&ids).await?;
    let shown = |record: Option<Arc<DocumentRecord>>| -> Result<Option<Arc<DocumentRecord>>> {
        let Some(record) = record else { return Ok(None) };
        Ok(request.may_show(&record)?.then_some(record))
    };
    ids.into_iter().zip(records).map(|(id, record)| Ok((id, shown(record)?))).collect()
}

const fn revision(origin: &PointOrigin) -> (DocId, u64) {
    (origin.doc_id, origin.revision)
}

fn is_live(records: &DocumentRecords, (doc_id, revision): (DocId, u64)) -> bool {
    records.get(&doc_id).is_some_and(|record| record.revision() == revision)
}

/// Drops a leg's stale hits, and returns whether they may have displaced live ones.
fn drop_stale(leg: &mut Leg, stale: &BTreeSet<(DocId, u64)>) -> bool {
    let listed = leg.hits.len();
    leg.hits.retain(|hit| !stale.contains(&revision(&hit.origin)));
    leg.full && leg.hits.len() * 2 < listed
}

//! Which hits a live document's record vouches for.

use std::collections::{BTreeSet, HashMap};

use lkr_catalog::{Catalog, Result};
use lkr_domain::{DocId, Document};
use lkr_vectors::PointOrigin;

use crate::legs::{Leg, Legs};

/// The records of the documents that the hits come from.
pub(crate) type Documents = HashMap<DocId, Document>;

/// What became of the hits of a batch.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The live documents among those that were hit.
    pub(crate) documents: Documents,
    /// The revisions that hits were dropped for.
    pub(crate) dead: BTreeSet<(DocId, u64)>,
    /// Whether a full leg lost more than half of its hits, so that live points may wait behind the dead.
    pub(crate) starved: bool,
    /// Whether a document that was hit is live in another revision than the one that was hit.
    pub(crate) replaced: bool,
}

impl Live {
    /// Adds what became of another batch.
    pub(crate) fn join(&mut self, other: Self) {
        self.documents.extend(other.documents);
        self.dead.extend(other.dead);
        self.starved |= other.starved;
        self.replaced |= other.replaced;
    }
}

/// Drops the hits that are not of a live document's recorded revision. The records are read after the hits, so that
/// what a finished delete took away is never shown.
pub(crate) async fn keep_live(catalog: &Catalog, legs: &mut Legs) -> Result<Live> {
    let documents = documents(catalog, revisions(legs)).await?;
    let dead: BTreeSet<_> = revisions(legs).filter(|&revision| !is_live(&documents, revision)).collect();
    let replaced = dead.iter().any(|(doc_id, _)| documents.contains_key(doc_id));
    let starved = legs.all.iter_mut().map(|leg| drop_dead(leg, &documents)).fold(false, |any, one| any | one);
    Ok(Live { documents, dead, starved, replaced })
}

/// Keeps of revisions that were not live those that still are not, and answers whether these are all.
pub(crate) async fn keep_dead(catalog: &Catalog, dead: &mut Vec<(DocId, u64)>) -> Result<bool> {
    let documents = documents(catalog, dead.iter().copied()).await?;
    let all = dead.len();
    dead.retain(|&revision| !is_live(&documents, revision));
    Ok(dead.len() == all)
}

/// The records of the live documents among these.
async fn documents(catalog: &Catalog, revisions: impl Iterator<Item = (DocId, u64)>) -> Result<Documents> {
    let ids: BTreeSet<DocId> = revisions.map(|(doc_id, _)| doc_id).collect();
    let ids: Vec<DocId> = ids.into_iter().collect();
    let records = catalog.documents(&ids).await?;
    Ok(ids.into_iter().zip(records).filter_map(|(id, record)| Some((id, record?))).collect())
}

fn revisions(legs: &Legs) -> impl Iterator<Item = (DocId, u64)> {
    legs.all.iter().flat_map(|leg| &leg.hits).map(|hit| revision(&hit.origin))
}

const fn revision(origin: &PointOrigin) -> (DocId, u64) {
    (origin.doc_id, origin.revision)
}

fn is_live(documents: &Documents, (doc_id, revision): (DocId, u64)) -> bool {
    documents.get(&doc_id).is_some_and(|document| document.revision == revision)
}

/// Drops a leg's dead hits, and answers whether it may have been starved by them.
fn drop_dead(leg: &mut Leg, documents: &Documents) -> bool {
    let listed = leg.hits.len();
    leg.hits.retain(|hit| is_live(documents, revision(&hit.origin)));
    leg.full && leg.hits.len() * 2 < listed
}

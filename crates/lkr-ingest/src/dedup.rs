//! Deciding whether a text becomes a document or is a duplicate of one.

use std::collections::HashSet;

use lkr_catalog::{Catalog, Duplicate, Stored};
use lkr_domain::{Dedup, Document, TaskId};
use lkr_state::{Peers, Write};

use crate::{
    Result,
    duplicate_index::{DuplicateIndex, TextClaim},
    shared_claim::SharedClaim,
    space_text::SpaceText,
};

/// Whether a text becomes a document.
#[derive(Debug)]
pub(crate) enum Decision<'a> {
    /// It does, provided that the writes are part of the publishing step: they fail if a duplicate was published.
    Unique(Option<TextClaim<'a>>, Vec<Write>),
    /// Another task is processing a duplicate; decide again when it has ended.
    Wait,
    /// It does not: this document is its duplicate.
    Duplicate(Duplicate, Box<Stored<Document>>),
}

/// What the documents say about a text.
#[derive(Debug)]
pub(crate) enum Lookup {
    /// No document is a duplicate of it. The writes are part of the publishing step: they fail if one was published since.
    Unique(Vec<Write>),
    /// This document is.
    Duplicate(Duplicate, Box<Stored<Document>>),
}

pub(crate) async fn decide<'a>(
    (catalog, peers): (&Catalog, &Peers),
    index: &'a DuplicateIndex,
    task: TaskId,
    rule: Dedup,
    text: SpaceText<'_>,
) -> Result<Decision<'a>> {
    if rule == Dedup::None {
        return Ok(Decision::Unique(None, Vec::new()));
    }
    // Claim first, then look: a duplicate that is published in between was claimed before, so this claim would fail. A process
    // that loses its claims because it was stalled, or a document for which nobody looks for duplicates, is noticed by the
    // writes.
    let Some(mut claim) = index.claim(task, rule, text) else { return Ok(Decision::Wait) };
    if let Dedup::Simhash { threshold } = rule
        && peers.is_shared()
    {
        match SharedClaim::take(catalog, peers, task, text, threshold).await? {
            Some(shared) => claim = claim.with_shared(shared),
            None => return Ok(Decision::Wait),
        }
    }
    Ok(match look_up((catalog, peers), index, rule, text).await? {
        Lookup::Unique(unique) => Decision::Unique(Some(claim), unique),
        Lookup::Duplicate(found, earlier) => Decision::Duplicate(found, earlier),
    })
}

/// Looks for a duplicate among the documents.
pub(crate) async fn look_up(
    (catalog, peers): (&Catalog, &Peers),
    index: &DuplicateIndex,
    rule: Dedup,
    text: SpaceText<'_>,
) -> Result<Lookup> {
    match rule {
        Dedup::None => Ok(Lookup::Unique(Vec::new())),
        Dedup::Sha256 => find_equal(catalog, text).await,
        Dedup::Simhash { threshold } => find_near((catalog, peers.is_shared()), index, text, threshold).await,
    }
}

async fn find_equal(catalog: &Catalog, SpaceText { space, fingerprint }: SpaceText<'_>) -> Result<Lookup> {
    loop {
        let doc_id = match catalog.document_with_text(space, &fingerprint.sha256).await? {
            Ok(doc_id) => doc_id,
            Err(unique) => return Ok(Lookup::Unique(vec![unique.into_write()])),
        };
        // A document that was deleted or moved since has left the text index too.
        let document = catalog.document(doc_id).await?;
        if let Some(document) = document.filter(|document| document.value.space == *space) {
            return Ok(Lookup::Duplicate(Duplicate { doc_id, distance: 0 }, Box::new(document)));
        }
    }
}

async fn find_near(
    (catalog, is_shared): (&Catalog, bool),
    index: &DuplicateIndex,
    SpaceText { space, fingerprint }: SpaceText<'_>,
    threshold: u32,
) -> Result<Lookup> {
    // Read first, so that whatever the index does not contain yet changes it.
    let unique = catalog.no_new_fingerprint(space).await?;
    index.load(catalog, is_shared).await?;
    let mut stale = HashSet::new();
    while let Some((doc_id, distance)) = index.nearest(space, fingerprint.simhash, threshold, &stale) {
        let document = catalog.document(doc_id).await?;
        let has_distance = |document: &Stored<Document>| {
            let known = document.value.fingerprint.as_ref().filter(|_| document.value.space == *space);
            known.is_some_and(|known| (known.simhash ^ fingerprint.simhash).count_ones() == distance)
        };
        if let Some(document) = document.filter(has_distance) {
            return Ok(Lookup::Duplicate(Duplicate { doc_id, distance }, Box::new(document)));
        }
        stale.insert(doc_id);
    }
    Ok(Lookup::Unique(vec![unique.into_write()]))
}

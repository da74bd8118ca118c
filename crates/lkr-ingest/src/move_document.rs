//! Moving a live document to another space.
//!
//! The points and the text are copied to a new revision, which carries the new space. Then one step points the record to
//! it. So a search finds the document in exactly one of the two spaces: until the step by the earlier points, from then on
//! by the copies. An interrupted move leaves a note, by which the next start discards the copies.

use std::collections::HashMap;

use lkr_catalog::{DocumentChange, DocumentState, l1_id, tags_of};
use lkr_domain::{DocId, Document, Layer, PointId};
use lkr_state::Write;
use lkr_vectors::{Collection, Condition, Filter, Include, Point, PointOrigin, Tags};

use crate::{
    Error, ErrorKind, Ports, Result,
    change::{apply_by_hand, check_replacement},
    collections::all_collections,
    point_writer::PointWriter,
    state::IngestState,
};

/// The number of points that are copied at a time.
const BATCH: usize = 200;

/// Changes a live document whose change names another space. Returns the changed document; `None` if it is not live.
///
/// # Errors
/// `Invalid` if the document, or its unfinished replacement, would exceed a limit.
pub(crate) async fn move_document(
    state: &IngestState,
    doc_id: DocId,
    change: &DocumentChange,
    alongside: Vec<Write>,
) -> Result<Option<Document>> {
    let _turn = state.changes.locks.lock(doc_id).await;
    let attempt = || try_move(state, doc_id, change, &alongside);
    let moved = state.ports.catalog.retry_on_conflict("move document", attempt).await;
    state.gc.wake();
    moved
}

async fn try_move(
    state: &IngestState,
    doc_id: DocId,
    change: &DocumentChange,
    alongside: &[Write],
) -> Result<Option<Document>> {
    let catalog = &state.ports.catalog;
    // While the embedding model changes, the task that changes it also fills the copies.
    let writer = PointWriter::new(&state.ports, doc_id).await?;
    let present = catalog.document_state(doc_id).await?;
    let Some(before) = present.document.as_ref().map(|document| &document.value) else { return Ok(None) };
    let now = catalog.now();
    let revision = present.copy_revision(catalog.clock())?;
    let after = Document { revision, updated_at: now, ..apply_by_hand(change, before)? };
    let concurrent = concurrent_change(&present, change)?;
    let pending = state.changes.begin_copy(doc_id, revision).await?;
    copy_points(&state.ports, before, &after).await?;
    let sha256 = Some(before.content_sha256.as_str()).filter(|sha256| !sha256.is_empty());
    state.ports.texts.copy(doc_id, before.revision, revision, sha256).await?;
    let alongside = [alongside.to_vec(), writer.publishing(catalog).await?].concat();
    catalog.change(&present, &after, concurrent.as_ref(), Some(&pending.note), alongside).await?;
    pending.finish();
    state.duplicates.published(&after);
    Ok(Some(after))
}

/// What a replacement that was accepted already adopts. It goes where the live document is, so it needs no space.
fn concurrent_change(present: &DocumentState, change: &DocumentChange) -> Result<Option<DocumentChange>> {
    let change = DocumentChange { space: None, ..change.clone() };
    if change == DocumentChange::default() || !present.may_be_replaced() {
        return Ok(None);
    }
    check_replacement(present, &change)?;
    Ok(Some(change))
}

/// Copies the points of a document in every collection to the revision of `after`.
async fn copy_points(ports: &Ports, before: &Document, after: &Document) -> Result<()> {
    let copy = PointCopy { before, after, tags: tags_of(after), nodes: node_ids(before, after) };
    let collections = all_collections(&*ports.vectors).await?;
    let (l1, others): (Vec<_>, Vec<_>) = collections.into_iter().partition(|(layer, _)| *layer == Layer::L1);
    // L1 is written last: if it exists, all points exist. So it is read first: in collections that are being filled, it may be
    // written after the others were read.
    let mut roots = Vec::with_capacity(l1.len());
    for (_, collection) in l1 {
        roots.push((copy.root(ports, &collection).await?, collection));
    }
    for (layer, collection) in others {
        copy.run(ports, layer, &collection).await?;
    }
    for (root, collection) in roots {
        store(ports, &collection, root).await?;
    }
    Ok(())
}

/// Stores copies, unless the collection was dropped meanwhile.
async fn store(ports: &Ports, collection: &Collection, copies: Vec<Point>) -> Result<()> {
    if copies.is_empty() {
        return Ok(());
    }
    match ports.vectors.upsert(collection, copies).await {
        Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => Ok(()),
        stored => Ok(stored?),
    }
}

/// The ids of the copies of a document's nodes.
fn node_ids(before: &Document, after: &Document) -> HashMap<PointId, PointId> {
    let doc_id = before.doc_id;
    let of_layer = |layer: Layer| {
        let count = u32::try_from(before.counts.of(layer)).unwrap_or(u32::MAX);
        let id = move |revision, ordinal| PointId::derive(doc_id, revision, layer, ordinal);
        let (from, to) = (before.revision, after.revision);
        (0..count).map(move |ordinal| (id(from, ordinal), id(to, ordinal)))
    };
    of_layer(Layer::L2).chain(of_layer(Layer::L3)).collect()
}

struct PointCopy<'a> {
    before: &'a Document,
    after: &'a Document,
    tags: Tags,
    nodes: HashMap<PointId, PointId>,
}

impl PointCopy<'_> {
    async fn run(&self, ports: &Ports, layer: Layer, collection: &Collection) -> Result<()> {
        let filter = Filter::only(Condition::Revision(self.before.doc_id, self.before.revision));
        let mut after = None;
        loop {
            let page = ports.vectors.scroll(collection, &filter, after.as_ref(), BATCH, Include::All).await;
            let page = match page {
                // The collection was dropped meanwhile.
                Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => return Ok(()),
                page => page?,
            };
            let copies = page.points.into_iter().map(|point| self.copy(layer, point));
            store(ports, collection, copies.collect::<Result<_>>()?).await?;
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The copy of the L1 point of a collection, if it has one.
    async fn root(&self, ports: &Ports, collection: &Collection) -> Result<Vec<Point>> {
        let id = l1_id(self.before.doc_id, self.before.revision);
        let stored = match ports.vectors.get(collection, &[id], Include::All).await {
            // The collection was dropped meanwhile.
            Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => return Ok(Vec::new()),
            stored => stored?,
        };
        stored.into_iter().flatten().map(|point| self.copy(Layer::L1, point)).collect()
    }

    fn copy(&self, layer: Layer, point: Point) -> Result<Point> {
        let PointOrigin { doc_id, ordinal, l2, l3, .. } = point.origin;
        let revision = self.after.revision;
        let origin = PointOrigin { revision, l2: self.node(l2)?, l3: self.node(l3)?, ..point.origin };
        let id = PointId::derive(doc_id, revision, layer, ordinal);
        Ok(Point { id, origin, tags: self.tags.clone(), ..point })
    }

    /// The copy of a node.
    fn node(&self, id: Option<PointId>) -> Result<Option<PointId>> {
        let Some(id) = id else { return Ok(None) };
        let copy = self.nodes.get(&id).copied();
        let unknown =
            || Error::new(ErrorKind::Internal, "copy points", format!("no node {id} in the document"));
        Ok(Some(copy.ok_or_else(unknown)?))
    }
}

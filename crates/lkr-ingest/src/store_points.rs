//! Embedding the chunks of a draft and storing its points.

use std::ops::Range;

use lkr_catalog::{Progress, Stage, l1_id};
use lkr_domain::{Layer, PointId};
use lkr_vectors::{Condition, Filter, Include, Point};

use crate::{
    Error, ErrorKind, Ports, Result,
    categorize::{FoundCategory, find_category},
    collections::set_tags_everywhere,
    document_draft::DocumentDraft,
    draft_body::DraftPoint,
    passage_vectors::{NodeMeans, batches, embed},
    point_writer::PointWriter,
    report::Report,
    reused_vectors::ReusedVectors,
};

/// Stores the points of one document.
pub(crate) struct PointStorage<'a> {
    pub(crate) ports: &'a Ports,
    /// The number of chunks that are embedded and stored at a time.
    pub(crate) batch: usize,
    pub(crate) writer: &'a PointWriter,
    pub(crate) reused: &'a ReusedVectors,
}

/// The dense vectors of a batch: those of points that have none are `None`.
type BatchVectors = Vec<Option<Vec<f32>>>;

impl PointStorage<'_> {
    /// Embeds the chunks that have no vector yet and stores all points. Each batch of chunks is stored together with the
    /// nodes whose last chunk it contains, so that memory holds one batch at a time. With the last batch the document gets
    /// its vector, and with the vector its category. Returns the number of embedded texts, and the category.
    pub(crate) async fn store(
        &self,
        draft: &mut DocumentDraft,
        report: &Report,
    ) -> Result<(u64, FoundCategory)> {
        let total = draft.count(Layer::Chunks);
        let progress = |done: u32| {
            report.progress(Stage::Embed, Progress { done: done.into(), total: total.into() });
        };
        let (mut means, mut nodes) = (NodeMeans::default(), StoredNodes::default());
        let (mut embedded, mut category) = (0, FoundCategory::default());
        progress(0);
        for batch in batches(total, self.batch) {
            let [chunks] = draft.points([(Layer::Chunks, batch.clone())]).await?;
            let (vectors, new) = self.batch_vectors(total, &chunks).await?;
            embedded += new;
            for (chunk, vector) in chunks.iter().zip(&vectors) {
                vector.iter().for_each(|vector| means.add(&chunk.source.origin, vector));
            }
            let chunks: Vec<_> = chunks.into_iter().zip(vectors).collect();
            if batch.end == total {
                category = self.store_last(draft, batch.clone(), chunks, nodes, &mut means).await?;
            } else {
                let chunks = finish(draft, chunks);
                let orphan = || Error::new(ErrorKind::Internal, "store points", "a chunk is in no node");
                let complete = nodes.advance(draft.parents(batch.end).ok_or_else(orphan)?);
                self.store_batch(draft, chunks, complete, &mut means).await?;
            }
            progress(batch.end);
        }
        Ok((embedded, category))
    }

    /// Stores the last chunks and all remaining nodes with the document's category. Points that were stored before get the
    /// category too; the document is not live yet.
    async fn store_last(
        &self,
        draft: &mut DocumentDraft,
        batch: Range<u32>,
        chunks: Vec<(DraftPoint, Option<Vec<f32>>)>,
        mut nodes: StoredNodes,
        means: &mut NodeMeans,
    ) -> Result<FoundCategory> {
        let l1_vector = means.take(&l1_id(draft.document.doc_id, draft.document.revision));
        let model = self.writer.embedder().map(|embedder| embedder.profile().id.as_str());
        let vector = l1_vector.as_deref().zip(model);
        let category = find_category(self.ports, &draft.document, vector).await;
        draft.set_category(category.name.clone());
        let chunks = finish(draft, chunks);
        let [l2, l3] = nodes.advance((draft.count(Layer::L2), draft.count(Layer::L3)));
        let [l2, l3, root] = draft.points([l2, l3, (Layer::L1, 0..1)]).await?;
        let [l2, l3] = [l2, l3].map(|points| node_points(draft, points, means));
        let root = root.into_iter().map(|point| draft.finish_root(point, l1_vector.clone())).collect();
        // L1 is written last: if it exists, all points exist.
        let points = [(Layer::Chunks, chunks), (Layer::L2, l2), (Layer::L3, l3), (Layer::L1, root)];
        self.writer.upsert(self.ports, points).await?;
        if batch.start > 0 && !draft.document.category.is_empty() {
            let filter = Filter::only(Condition::Revision(draft.document.doc_id, draft.document.revision));
            set_tags_everywhere(&*self.ports.vectors, &filter, &draft.tags).await?;
        }
        Ok(category)
    }

    /// Stores chunks and the nodes that are complete with them.
    async fn store_batch(
        &self,
        draft: &DocumentDraft,
        chunks: Vec<Point>,
        complete: CompleteNodes,
        means: &mut NodeMeans,
    ) -> Result<()> {
        let [l2, l3] = draft.points(complete).await?.map(|points| node_points(draft, points, means));
        // Nothing comes last yet.
        let points = [(Layer::Chunks, chunks), (Layer::L2, l2), (Layer::L3, l3), (Layer::L1, Vec::new())];
        self.writer.upsert(self.ports, points).await
    }

    /// The vectors of a batch of chunks, and the number of newly embedded texts. In order of preference: those that an
    /// earlier attempt stored, those of the same passages in the replaced revision, new ones.
    async fn batch_vectors(&self, total: u32, batch: &[DraftPoint]) -> Result<(BatchVectors, u64)> {
        let Some(embedder) = self.writer.embedder() else { return Ok((vec![None; batch.len()], 0)) };
        // Only a document of several batches can have an earlier one.
        if total as usize > self.batch
            && let Some(stored) = self.stored_vectors(batch).await?
        {
            return Ok((stored, 0));
        }
        let mut vectors =
            self.reused.vectors(&*self.ports.vectors, &self.writer.collections().chunks, batch).await?;
        let missing = batch.iter().zip(&vectors).filter(|(_, vector)| vector.is_none());
        let missing: Vec<&str> = missing.map(|(chunk, _)| chunk.passage.as_str()).collect();
        if missing.is_empty() {
            return Ok((vectors, 0));
        }
        let (embedded, new) = embed(embedder, missing.into_iter()).await?;
        let empty = vectors.iter_mut().filter(|vector| vector.is_none());
        empty.zip(embedded).for_each(|(slot, vector)| *slot = Some(vector));
        Ok((vectors, new))
    }

    /// The stored vectors of these chunks, if all of them have one.
    async fn stored_vectors(&self, batch: &[DraftPoint]) -> Result<Option<BatchVectors>> {
        let ids: Vec<PointId> = batch.iter().map(|point| point.source.id).collect();
        let stored = match self.ports.vectors.get(&self.writer.collections().chunks, &ids, Include::All).await
        {
            Err(error) if error.kind() == lkr_vectors::ErrorKind::NotFound => return Ok(None),
            stored => stored?,
        };
        let vectors: Vec<_> = batch
            .iter()
            .zip(stored)
            .map(|(point, stored)| stored.filter(|stored| stored.payload == point.source.payload)?.dense)
            .collect();
        Ok(vectors.iter().all(Option::is_some).then_some(vectors))
    }
}

/// The number of stored nodes of L2 and L3.
#[derive(Debug, Clone, Copy, Default)]
struct StoredNodes {
    l2: u32,
    l3: u32,
}

/// The ordinals of nodes to store, by layer.
type CompleteNodes = [(Layer, Range<u32>); 2];

impl StoredNodes {
    /// The nodes before these, which count as stored from now on.
    fn advance(&mut self, (l2, l3): (u32, u32)) -> CompleteNodes {
        let from = std::mem::replace(self, Self { l2, l3 });
        [(Layer::L2, from.l2..l2), (Layer::L3, from.l3..l3)]
    }
}

fn finish(draft: &DocumentDraft, points: Vec<(DraftPoint, Option<Vec<f32>>)>) -> Vec<Point> {
    points.into_iter().map(|(point, dense)| draft.finish(point, dense)).collect()
}

/// Nodes with the means of their chunks' vectors.
fn node_points(draft: &DocumentDraft, nodes: Vec<DraftPoint>, means: &mut NodeMeans) -> Vec<Point> {
    let finish = |point: DraftPoint| {
        let dense = means.take(&point.source.id);
        draft.finish(point, dense)
    };
    nodes.into_iter().map(finish).collect()
}

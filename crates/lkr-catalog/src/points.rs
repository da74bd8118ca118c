//! Conversion of documents to points of the vector store, and back.

use std::ops::Range;

use lkr_domain::{Chunk, DocId, Document, IndexedTitle, Layer, Layered, Node, PointId, Root, SparseVector};
use lkr_vectors::{Collection, Include, Point, PointOrigin, Tags, VectorStore};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result, keep_record};

/// A node with its ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRecord<T> {
    /// Its id.
    pub id: PointId,
    /// The id of the node that contains it; `None` for L2.
    pub parent_id: Option<PointId>,
    /// The node or chunk.
    pub value: T,
}

/// A point without its vectors and without the tags that all points of its document share.
#[derive(Debug, Clone, PartialEq)]
pub struct PointSource {
    /// Its layer.
    pub layer: Layer,
    /// Its id.
    pub id: PointId,
    /// Its document, revision, ordinal and ancestors.
    pub origin: PointOrigin,
    /// The node or chunk as JSON.
    pub payload: Value,
}

impl PointSource {
    /// The complete point, with the document's [`tags_of`](crate::tags_of).
    #[must_use]
    pub fn point(self, tags: &Tags, sparse: SparseVector, dense: Option<Vec<f32>>) -> Point {
        let Self { layer: _, id, origin, payload } = self;
        Point { id, origin, tags: tags.clone(), dense, sparse, payload }
    }
}

/// The payload of an L1 point, without the record that is kept beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct L1Payload {
    title: String,
    summary: String,
    /// Absent if it is `title`, as in points of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indexed_title: Option<IndexedTitle>,
}

/// The content of an L1 point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct L1Content {
    /// The title of the document when it was ingested; the record may have another one since.
    pub title: String,
    /// The summary.
    pub summary: String,
    /// The title with which the nodes and chunks were indexed.
    pub indexed_title: IndexedTitle,
}

/// The points of a document, from L1 down, each layer in order.
#[must_use]
pub fn points_of(document: &Document, layered: &Layered) -> Vec<PointSource> {
    let of_layer = |layer| points_in(document.doc_id, document.revision, layered, layer, 0..u32::MAX);
    let mut points: Vec<_> = Layer::ALL.into_iter().flat_map(of_layer).collect();
    points.iter_mut().filter(|point| point.layer == Layer::L1).for_each(|l1| keep_record(l1, document));
    points
}

/// The points of a document's layer with these ordinals, in order. The points of a long document need not be in memory
/// all at once. That of L1 lacks [the record](crate::keep_record).
#[must_use]
pub fn points_in(
    doc_id: DocId,
    revision: u64,
    layered: &Layered,
    layer: Layer,
    ordinals: Range<u32>,
) -> Vec<PointSource> {
    let factory = PointFactory { doc_id, revision };
    let section_of = |l3: u32| layered.l3.get(l3 as usize).and_then(|node| node.parent);
    match layer {
        Layer::L1 if ordinals.contains(&0) => {
            let Root { title, summary, indexed_title, .. } = layered.root.clone();
            let indexed_title = Some(indexed_title).filter(|indexed| *indexed != title.as_str().into());
            vec![factory.point(layer, 0, (None, None), json(&L1Payload { title, summary, indexed_title }))]
        }
        Layer::L1 => Vec::new(),
        Layer::L2 => {
            let nodes = slice(&layered.l2, ordinals).iter();
            nodes.map(|node| factory.point(layer, node.ordinal, (None, None), json(node))).collect()
        }
        Layer::L3 => {
            let nodes = slice(&layered.l3, ordinals).iter();
            nodes.map(|node| factory.point(layer, node.ordinal, (node.parent, None), json(node))).collect()
        }
        Layer::Chunks => {
            let ancestors = |chunk: &Chunk| (section_of(chunk.parent), Some(chunk.parent));
            let chunks = slice(&layered.chunks, ordinals).iter();
            chunks.map(|chunk| factory.point(layer, chunk.ordinal, ancestors(chunk), json(chunk))).collect()
        }
    }
}

/// The items in a range; ordinals beyond the end are ignored.
fn slice<T>(items: &[T], ordinals: Range<u32>) -> &[T] {
    let end = items.len().min(ordinals.end as usize);
    items.get(ordinals.start as usize..end).unwrap_or_default()
}

/// The content of an L1 payload.
pub fn l1_of(payload: Value) -> Result<L1Content> {
    let L1Payload { title, summary, indexed_title } = from_json(payload)?;
    let indexed_title = indexed_title.unwrap_or_else(|| title.as_str().into());
    Ok(L1Content { title, summary, indexed_title })
}

/// The node in an L2 or L3 payload.
pub fn node_of(payload: Value) -> Result<Node> {
    from_json(payload)
}

/// The chunk in a chunk's payload.
pub fn chunk_of(payload: Value) -> Result<Chunk> {
    from_json(payload)
}

/// The nodes of a live document's layer (L2 or L3), in order.
pub async fn nodes(
    vectors: &dyn VectorStore,
    document: &Document,
    layer: Layer,
) -> Result<Vec<NodeRecord<Node>>> {
    let count = u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX);
    let points = fetch(vectors, document, layer, 0, count).await?;
    points
        .into_iter()
        .map(|point| {
            Ok(NodeRecord { id: point.id, parent_id: point.origin.l2, value: node_of(point.payload)? })
        })
        .collect()
}

/// Up to `limit` chunks of a live document, starting at ordinal `from`.
pub async fn chunks(
    vectors: &dyn VectorStore,
    document: &Document,
    from: u32,
    limit: u32,
) -> Result<Vec<NodeRecord<Chunk>>> {
    let count = u32::try_from(document.counts.chunks).unwrap_or(u32::MAX);
    let end = from.saturating_add(limit).min(count);
    let points = fetch(vectors, document, Layer::Chunks, from, end).await?;
    points
        .into_iter()
        .map(|point| {
            Ok(NodeRecord { id: point.id, parent_id: point.origin.l3, value: chunk_of(point.payload)? })
        })
        .collect()
}

/// The id of a document's L1 point.
#[must_use]
pub fn l1_id(doc_id: DocId, revision: u64) -> PointId {
    PointId::derive(doc_id, revision, Layer::L1, 0)
}

async fn fetch(
    vectors: &dyn VectorStore,
    document: &Document,
    layer: Layer,
    from: u32,
    end: u32,
) -> Result<Vec<Point>> {
    let ids: Vec<_> =
        (from..end).map(|n| PointId::derive(document.doc_id, document.revision, layer, n)).collect();
    let points = vectors.get(&Collection::from(layer), &ids, Include::Payload).await?;
    points
        .into_iter()
        .map(|point| point.ok_or_else(|| Error::missing_point("read points", document.doc_id)))
        .collect()
}

struct PointFactory {
    doc_id: DocId,
    revision: u64,
}

impl PointFactory {
    /// A point with its ancestors, which are given by their ordinals in L2 and L3.
    fn point(
        &self,
        layer: Layer,
        ordinal: u32,
        (l2, l3): (Option<u32>, Option<u32>),
        payload: Value,
    ) -> PointSource {
        let Self { doc_id, revision } = *self;
        let id = |layer, ordinal| PointId::derive(doc_id, revision, layer, ordinal);
        let origin = PointOrigin {
            doc_id,
            revision,
            ordinal,
            l2: l2.map(|n| id(Layer::L2, n)),
            l3: l3.map(|n| id(Layer::L3, n)),
        };
        PointSource { layer, id: id(layer, ordinal), origin, payload }
    }
}

fn json<T: Serialize>(value: &T) -> Value {
    // Plain structs of strings and numbers always become JSON.
    serde_json::to_value(value).unwrap_or(Value::Null)
}

fn from_json<T: for<'de> Deserialize<'de>>(payload: Value) -> Result<T> {
    serde_json::from_value(payload).map_err(|e| Error::corrupt("read payload", e))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn l1_payload_has_the_indexed_title_only_if_it_is_another() {
        let payload = |indexed: IndexedTitle| {
            let root = Root {
                title: "scan-0417".to_owned(),
                indexed_title: indexed,
                summary: "It rises.".to_owned(),
                keywords: Vec::new(),
                language: String::new(),
                char_count: 9,
            };
            let layered = Layered { root, l2: Vec::new(), l3: Vec::new(), chunks: Vec::new() };
            points_in(DocId::from_bytes([1; 16]), 1, &layered, Layer::L1, 0..1).remove(0).payload
        };
        let plain = json!({ "title": "scan-0417", "summary": "It rises." });
        assert_eq!(payload("scan-0417".into()), plain);
        assert_eq!(l1_of(plain).unwrap().indexed_title, "scan-0417".into());
        for begins_paths in [true, false] {
            let own = IndexedTitle { text: "Tides".to_owned(), begins_paths };
            let content = l1_of(payload(own.clone())).unwrap();
            assert_eq!((content.title.as_str(), content.indexed_title), ("scan-0417", own));
        }
    }
}

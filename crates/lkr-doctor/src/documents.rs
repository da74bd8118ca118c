//! A live document against everything that its record tells.

use std::collections::BTreeMap;

use lkr_catalog::{Result, chunk_of, l1_of, node_of, tags_of};
use lkr_domain::{CharSpan, Document, Layer, PointId};
use lkr_parsers::decode_blocks;
use lkr_vectors::{Collection, Condition, Filter, Include, Point};
use tokio::task::spawn_blocking;

use crate::{Doctor, Ports, RepairAction, layers};

/// How many points are read at a time.
const BATCH: u32 = 128;

/// What is wrong with the points of a document.
#[derive(Default)]
struct Ills {
    /// How many points are wrong by what is, of each layer.
    points: BTreeMap<(Layer, &'static str), u64>,
    /// Whether tags differ from those of the record.
    tags: bool,
}

impl Doctor<'_> {
    pub(crate) async fn document(&mut self, document: &Document) {
        self.report.documents += 1;
        self.report.counts += document.counts;
        match self.ports.catalog.is_indexed(document).await {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("document {} is not in the indexes of texts", document.doc_id);
                self.found(what, Some(&document.title), RepairAction::Index(Box::new(document.clone())))
                    .await;
            }
            Err(error) => {
                let what = format!("what the indexes of texts say of document {}", document.doc_id);
                self.unread(what, error).await;
            }
        }
        let text = self.text(document).await;
        self.original(document).await;
        self.points(document, text.as_deref()).await;
    }

    /// The text, where it is the one that was stored.
    async fn text(&mut self, document: &Document) -> Option<String> {
        let (doc_id, title) = (document.doc_id, Some(document.title.as_str()));
        let sha256 = Some(document.content_sha256.as_str()).filter(|sha256| !sha256.is_empty());
        let text = match self.ports.texts.get(doc_id, document.revision, sha256).await {
            Ok(text) => text,
            Err(error) => {
                let what = format!("the text of document {doc_id} cannot be read: {error}");
                let lost = match document.original {
                    Some(_) => "replace the document by its file, which is kept",
                    None => "replace the document by its text",
                };
                self.found(what, title, RepairAction::Lost(lost)).await;
                return None;
            }
        };
        if !matches!(self.ports.texts.has_blocks(doc_id, document.revision).await, Ok(false)) {
            let blocks = self.ports.texts.blocks(doc_id, document.revision, None).await;
            if blocks.is_ok_and(|blocks| decode_blocks(&blocks, &text).is_err()) {
                let what = format!("the blocks of document {doc_id} are not of its text");
                self.found(what, title, RepairAction::DropBlocks(doc_id, document.revision)).await;
            }
        }
        self.fingerprint(document, text).await
    }

    async fn fingerprint(&mut self, document: &Document, text: String) -> Option<String> {
        let (text, made) = spawn_blocking(move || {
            let made = lkr_ingest::fingerprint(&text);
            (text, made)
        })
        .await
        .ok()?;
        if document.fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != made) {
            let what = format!("the fingerprint of document {} is not that of its text", document.doc_id);
            let cure = RepairAction::Fingerprint(Box::new(document.clone()), made);
            self.found(what, Some(&document.title), cure).await;
        }
        Some(text)
    }

    async fn original(&mut self, document: &Document) {
        let Some(original) = &document.original else { return };
        let read = async {
            let stored = self.ports.originals.get(&original.path).await?;
            let Some(stored) = stored else { return Ok(Some("is missing")) };
            if stored.size_bytes != original.size_bytes {
                return Ok(Some("has another length"));
            }
            let whole = stored.check(original.sha256.as_deref()).await;
            Ok::<_, lkr_catalog::Error>(whole.is_err().then_some("is damaged"))
        };
        let ill = read.await.unwrap_or(Some("cannot be read"));
        if let Some(ill) = ill {
            let what = format!("the file {} of document {} {ill}", original.path, document.doc_id);
            let lost = "its text and points stay; send the file again to have it back";
            self.found(what, Some(&document.title), RepairAction::Lost(lost)).await;
        }
    }

    async fn points(&mut self, document: &Document, text: Option<&str>) {
        let mut ills = Ills::default();
        for layer in layers() {
            match check_layer(self.ports, document, layer, text, &mut ills).await {
                Ok(stored) => self.known.add_points(layer, stored),
                Err(error) => {
                    self.unread(format!("the {layer} points of document {}", document.doc_id), error).await;
                }
            }
        }
        let (doc_id, title) = (document.doc_id, Some(document.title.as_str()));
        if ills.tags {
            let what = format!("points of document {doc_id} have other tags than its record");
            self.found(what, title, RepairAction::Retag(Box::new(document.clone()))).await;
        }
        for ((layer, ill), count) in ills.points {
            let what = format!("{count} points of document {doc_id} in {layer} {ill}");
            let cure = match text {
                Some(text) => RepairAction::Replace(Box::new(document.clone()), text.to_owned()),
                None => RepairAction::Lost("its text is lost too; replace the document"),
            };
            self.found(what, title, cure).await;
        }
    }
}

impl Ills {
    fn add(&mut self, layer: Layer, ill: &'static str, count: u64) {
        *self.points.entry((layer, ill)).or_default() += count;
    }
}

/// Looks at all points of a layer of a document, and answers how many are stored.
async fn check_layer(
    ports: &Ports,
    document: &Document,
    layer: Layer,
    text: Option<&str>,
    ills: &mut Ills,
) -> Result<u64> {
    let (vectors, collection) = (&ports.vectors, Collection::from(layer));
    let Some(spec) = vectors.describe(&collection).await? else {
        ills.add(layer, "are missing", document.counts.of(layer));
        return Ok(0);
    };
    let wants_dense = spec.dense.is_some() && !ports.catalog.is_unembedded(document.doc_id).await?;
    let (tags, mut cuts) = (tags_of(document), Cuts::new(text));
    let count = u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX);
    for from in (0..count).step_by(BATCH as usize) {
        let ordinals = from..from.saturating_add(BATCH).min(count);
        let id = |ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
        let ids: Vec<PointId> = ordinals.clone().map(id).collect();
        for (ordinal, point) in ordinals.zip(points_of(ports, &collection, &ids).await) {
            let Some(point) = point else {
                ills.add(layer, "cannot be read", 1);
                continue;
            };
            let Some(point) = point else {
                ills.add(layer, "are missing", 1);
                continue;
            };
            ills.tags |= point.tags != tags;
            if wants_dense && point.dense.is_none() {
                ills.add(layer, "have no dense vectors", 1);
            }
            if let Some(ill) = wrong(document, layer, ordinal, point, &mut cuts) {
                ills.add(layer, ill, 1);
            }
        }
    }
    let own = Filter::only(Condition::Revision(document.doc_id, document.revision));
    let stored = vectors.count(&collection, &own).await?;
    if stored > u64::from(count) {
        ills.add(layer, "are too many", stored - u64::from(count));
    }
    Ok(stored)
}

/// The points of these ids; an outer `None` for each that cannot be read.
async fn points_of(ports: &Ports, collection: &Collection, ids: &[PointId]) -> Vec<Option<Option<Point>>> {
    if let Ok(points) = ports.vectors.get(collection, ids, Include::All).await {
        return points.into_iter().map(Some).collect();
    }
    // One of them keeps the others from being read together.
    let mut points = Vec::with_capacity(ids.len());
    for id in ids {
        let point = ports.vectors.get(collection, &[*id], Include::All).await;
        points.push(point.ok().and_then(|point| point.into_iter().next()));
    }
    points
}

/// What is wrong with a point.
fn wrong(
    document: &Document,
    layer: Layer,
    ordinal: u32,
    point: Point,
    cuts: &mut Cuts<'_>,
) -> Option<&'static str> {
    let id = |layer, ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
    let origin = point.origin;
    if (origin.doc_id, origin.revision, origin.ordinal) != (document.doc_id, document.revision, ordinal) {
        return Some("are of another place");
    }
    let unreadable = Some("cannot be read");
    match layer {
        Layer::L1 => l1_of(point.payload).err().and(unreadable),
        Layer::L2 | Layer::L3 => {
            let Ok(node) = node_of(point.payload) else { return unreadable };
            let parent = node.parent.map(|parent| id(Layer::L2, parent));
            let right = node.ordinal == ordinal
                && origin.l2 == parent.filter(|_| layer == Layer::L3)
                && node.parent.is_none_or(|parent| u64::from(parent) < document.counts.l2)
                && node.span.end <= document.char_count;
            (!right).then_some("are of another place")
        }
        Layer::Chunks => {
            let Ok(chunk) = chunk_of(point.payload) else { return unreadable };
            let right = chunk.ordinal == ordinal
                && origin.l3 == Some(id(Layer::L3, chunk.parent))
                && u64::from(chunk.parent) < document.counts.l3;
            if !right {
                return Some("are of another place");
            }
            let cut = cuts.cut(chunk.span);
            cut.is_some_and(|cut| cut != chunk.text).then_some("are not what stands in the text")
        }
    }
}

/// Cuts a text at growing places without walking all of it each time.
struct Cuts<'t> {
    text: Option<&'t str>,
    /// A place in code points, and in bytes.
    character: u32,
    byte: usize,
}

impl<'t> Cuts<'t> {
    const fn new(text: Option<&'t str>) -> Self {
        Self { text, character: 0, byte: 0 }
    }

    /// What stands at `span`; empty where the text ends before, and `None` where there is no text.
    fn cut(&mut self, span: CharSpan) -> Option<&'t str> {
        let text = self.text?;
        if span.start < self.character {
            (self.character, self.byte) = (0, 0);
        }
        let start = behind(text, self.byte, span.start - self.character);
        (self.character, self.byte) = (span.start, start);
        text.get(start..behind(text, start, span.len()))
    }
}

/// The byte behind so many code points from a byte on.
fn behind(text: &str, from: usize, characters: u32) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.char_indices().nth(characters as usize).map_or(text.len(), |(byte, _)| from + byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_what_stands_there() {
        let text: String = (0..500).map(|n| char::from_u32(0x61 + n * 7).unwrap_or('x')).collect();
        let mut cuts = Cuts::new(Some(&text));
        for (start, end) in [(0, 10), (10, 30), (30, 30), (100, 499), (50, 60), (499, 600), (700, 800)] {
            let expected: String = text.chars().skip(start).take(end - start).collect();
            let span = CharSpan { start: start as u32, end: end as u32 };
            assert_eq!(cuts.cut(span), Some(expected.as_str()), "{start}..{end}");
        }
    }
}

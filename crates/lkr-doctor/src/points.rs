//! Checks the points of a live document.

use std::collections::BTreeMap;

use lkr_catalog::{Result, chunk_of, has_tags_of, l1_of, node_of, tags_of};
use lkr_domain::{CharSpan, Document, Layer, PointId};
use lkr_vectors::{Collection, Condition, Filter, Include, Point};

use crate::{checker::Checker, ports::Ports, repair::RepairAction};

/// Points that are read at a time.
const BATCH: u32 = 128;

/// The problems with the points of a document.
#[derive(Default)]
struct PointProblems {
    /// The number of points with each problem, by layer.
    points: BTreeMap<(Layer, &'static str), u64>,
    /// Whether a point has other tags than its record implies.
    wrong_tags: bool,
}

impl Checker<'_> {
    pub(crate) async fn check_points(&mut self, document: &Document, text: Option<&str>) {
        let mut problems = PointProblems::default();
        for layer in Layer::ALL {
            match check_layer(self.ports, document, layer, text, &mut problems).await {
                Ok(stored) => self.references.add_live_points(layer, stored),
                Err(error) => {
                    self.report_unchecked(
                        format!("the {layer} points of document {}", document.doc_id),
                        error,
                    )
                    .await;
                }
            }
        }
        let (doc_id, title) = (document.doc_id, Some(document.title.as_str()));
        if problems.wrong_tags && self.check_newer_tags(document).await {
            // The points that have other tags get those of the new record.
        } else if problems.wrong_tags {
            let what = format!("points of document {doc_id} have tags that differ from its record");
            self.report_finding(what, title, RepairAction::SetTags(Box::new(document.clone()))).await;
        }
        for ((layer, problem), count) in problems.points {
            let what = format!("{count} points of document {doc_id} in {layer} {problem}");
            let repair = match text {
                Some(text) => RepairAction::Reingest(Box::new(document.clone()), text.to_owned()),
                None => RepairAction::Unrepairable("its text is damaged too; replace the document"),
            };
            self.report_finding(what, title, repair).await;
        }
    }
}

impl PointProblems {
    fn add(&mut self, layer: Layer, problem: &'static str, count: u64) {
        *self.points.entry((layer, problem)).or_default() += count;
    }
}

/// Checks all points of a layer of a document, and returns the number that is stored.
async fn check_layer(
    ports: &Ports,
    document: &Document,
    layer: Layer,
    text: Option<&str>,
    problems: &mut PointProblems,
) -> Result<u64> {
    let (vectors, collection) = (&ports.vectors, Collection::from(layer));
    let Some(spec) = vectors.describe(&collection).await? else {
        problems.add(layer, "are missing", document.counts.of(layer));
        return Ok(0);
    };
    let wants_dense = spec.dense.is_some() && !ports.catalog.is_unembedded(document.doc_id).await?;
    let (tags, mut cursor) = (tags_of(document), TextCursor::new(text));
    let count = u32::try_from(document.counts.of(layer)).unwrap_or(u32::MAX);
    for from in (0..count).step_by(BATCH as usize) {
        let ordinals = from..from.saturating_add(BATCH).min(count);
        let id = |ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
        let ids: Vec<PointId> = ordinals.clone().map(id).collect();
        for (ordinal, point) in ordinals.zip(read_points(ports, &collection, &ids).await) {
            let Some(point) = point else {
                problems.add(layer, "cannot be read", 1);
                continue;
            };
            let Some(point) = point else {
                problems.add(layer, "are missing", 1);
                continue;
            };
            problems.wrong_tags |= point.tags != tags && !has_tags_of(&point.tags, document);
            if wants_dense && point.dense.is_none() {
                problems.add(layer, "have no dense vectors", 1);
            }
            if let Some(problem) = problem_of(document, layer, ordinal, point, &mut cursor) {
                problems.add(layer, problem, 1);
            }
        }
    }
    let of_revision = Filter::only(Condition::Revision(document.doc_id, document.revision));
    let stored = vectors.count(&collection, &of_revision).await?;
    if stored > u64::from(count) {
        problems.add(layer, "are superfluous", stored - u64::from(count));
    }
    Ok(stored)
}

/// Reads points by their ids. The outer `None` means unreadable, the inner one missing.
async fn read_points(ports: &Ports, collection: &Collection, ids: &[PointId]) -> Vec<Option<Option<Point>>> {
    if let Ok(points) = ports.vectors.get(collection, ids, Include::All).await {
        return points.into_iter().map(Some).collect();
    }
    // An unreadable point fails the whole batch, so they are read one by one.
    let mut points = Vec::with_capacity(ids.len());
    for id in ids {
        let point = ports.vectors.get(collection, &[*id], Include::All).await;
        points.push(point.ok().and_then(|point| point.into_iter().next()));
    }
    points
}

/// The problem with a point, if there is one.
fn problem_of(
    document: &Document,
    layer: Layer,
    ordinal: u32,
    point: Point,
    text: &mut TextCursor<'_>,
) -> Option<&'static str> {
    let id = |layer, ordinal| PointId::derive(document.doc_id, document.revision, layer, ordinal);
    let origin = point.origin;
    if (origin.doc_id, origin.revision, origin.ordinal) != (document.doc_id, document.revision, ordinal) {
        return Some("have the wrong position");
    }
    let unreadable = Some("cannot be read");
    match layer {
        Layer::L1 => l1_of(point.payload).err().and(unreadable),
        Layer::L2 | Layer::L3 => {
            let Ok(node) = node_of(point.payload) else { return unreadable };
            let parent = node.parent.map(|parent| id(Layer::L2, parent));
            let is_valid = node.ordinal == ordinal
                && origin.l2 == parent.filter(|_| layer == Layer::L3)
                && node.parent.is_none_or(|parent| u64::from(parent) < document.counts.l2)
                && node.span.end <= document.char_count;
            (!is_valid).then_some("have the wrong position")
        }
        Layer::Chunks => {
            let Ok(chunk) = chunk_of(point.payload) else { return unreadable };
            let is_valid = chunk.ordinal == ordinal
                && origin.l3 == Some(id(Layer::L3, chunk.parent))
                && u64::from(chunk.parent) < document.counts.l3;
            if !is_valid {
                return Some("have the wrong position");
            }
            let slice = text.slice(chunk.span);
            slice.is_some_and(|slice| slice != chunk.text).then_some("differ from the text")
        }
    }
}

/// Slices a text at growing offsets without walking all of it each time.
struct TextCursor<'t> {
    text: Option<&'t str>,
    /// The last offset, in code points.
    character: u32,
    /// The same offset, in bytes.
    byte: usize,
}

impl<'t> TextCursor<'t> {
    const fn new(text: Option<&'t str>) -> Self {
        Self { text, character: 0, byte: 0 }
    }

    /// The text at `span`, shortened at the end of the text; `None` if there is no text.
    fn slice(&mut self, span: CharSpan) -> Option<&'t str> {
        let text = self.text?;
        if span.start < self.character {
            (self.character, self.byte) = (0, 0);
        }
        let start = offset_after(text, self.byte, span.start - self.character);
        (self.character, self.byte) = (span.start, start);
        text.get(start..offset_after(text, start, span.len()))
    }
}

/// The byte offset that is `characters` code points after the byte offset `from`.
fn offset_after(text: &str, from: usize, characters: u32) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    rest.char_indices().nth(characters as usize).map_or(text.len(), |(byte, _)| from + byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cursor_slices_equal_those_by_code_points() {
        let text: String = (0..500).map(|n| char::from_u32(0x61 + n * 7).unwrap_or('x')).collect();
        let mut cursor = TextCursor::new(Some(&text));
        for (start, end) in [(0, 10), (10, 30), (30, 30), (100, 499), (50, 60), (499, 600), (700, 800)] {
            let expected: String = text.chars().skip(start).take(end - start).collect();
            let span = CharSpan { start: start as u32, end: end as u32 };
            assert_eq!(cursor.slice(span), Some(expected.as_str()), "{start}..{end}");
        }
    }
}

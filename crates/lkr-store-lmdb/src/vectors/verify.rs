//! Checks collections and every row of their points.

mod collections;
mod indexes;

use std::collections::HashSet;

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::PointOrigin;
use roaring::RoaringBitmap;

use self::indexes::ExpectedIndexes;
pub(crate) use self::indexes::{migrate_bitmaps, rebuild_indexes};
use super::{
    filter, keys,
    record::{Body, StoredBody, decode_origin},
    registry::{self, CollectionEntry, NUMBERS},
    rows,
    stored_vector::StoredVector,
    tag_sets::{self, TagReader, TagSetId},
};
use crate::{
    clusters::LINEAGE,
    codec::verify_checksum,
    env::{Kb, Table},
    error::InternalResult,
    verify::{Finding, check_counter},
};

/// The key length of a point's rows.
const ROW_KEY_BYTES: usize = 6;

/// Checks every collection: its points are readable, and its posting lists and bitmaps contain exactly them.
pub(crate) fn verify(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<()> {
    let entry = collections::verify(kb, txn, findings)?;
    let reached = entry.keys().last().copied().map_or(0, u64::from);
    check_counter(kb, txn, NUMBERS, reached, findings)?;
    entry.values().try_for_each(|entry| PointCheck { kb, txn, entry }.verify(findings))
}

/// The check of a collection's points.
struct PointCheck<'k> {
    kb: &'k Kb,
    txn: &'k RoTxn<'k>,
    entry: &'k CollectionEntry,
}

/// The internal ids of undamaged and of damaged points.
#[derive(Default)]
struct PointStatus {
    whole: RoaringBitmap,
    report_broken: RoaringBitmap,
    /// The point ids of damaged points, as far as they are known.
    describe_point_part: HashSet<PointId>,
    /// One above the highest internal id.
    end: u32,
}

impl PointCheck<'_> {
    fn verify(&self, findings: &mut Vec<Finding>) -> InternalResult<()> {
        let (before, number) = (findings.len(), self.entry.number);
        let ids = registry::ids(self.kb, self.txn, number).ok();
        let mut expected = ExpectedIndexes::new(ids.map_or(0, |ids| ids.posted));
        let mut status = self.classify_points(&mut expected, findings)?;
        for table in [self.kb.tables.bodies, self.kb.tables.dense] {
            self.check_orphans(table, &mut status, findings)?;
        }
        self.check_id_entries(&status, findings)?;
        if ids.is_none_or(|ids| ids.next < status.end || ids.posted > ids.next) {
            self.report_ids(status.end, findings);
        }
        if findings.len() > before {
            let what =
                format!("the indexes of {} hold points that are not whole", self.entry.spec.collection);
            findings.push(Finding::indexes(what, number));
            return Ok(());
        }
        expected.compare(self.kb, self.txn, self.entry, findings)
    }

    fn classify_points(
        &self,
        expected: &mut ExpectedIndexes,
        findings: &mut Vec<Finding>,
    ) -> InternalResult<PointStatus> {
        let (mut status, mut reader, mut lost_sets) =
            (PointStatus::default(), TagReader::default(), HashSet::new());
        for row in self.kb.tables.origins.prefix_iter(self.txn, &keys::collection(self.entry.number))? {
            let (key, checksummed) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            status.end = status.end.max(id.saturating_add(1));
            let origin =
                verify_checksum(checksummed).and_then(decode_origin).filter(|_| key.len() == ROW_KEY_BYTES);
            let Some((point, origin)) = origin else {
                status.report_broken.insert(id);
                self.report_broken(&format!("the origin of point number {id}"), key, None, findings);
                continue;
            };
            let body = self
                .kb
                .tables
                .bodies
                .get(self.txn, key)?
                .and_then(verify_checksum)
                .and_then(StoredBody::decode);
            match (body, self.broken_part(key, id, point)?) {
                (Some(stored), None) => {
                    let body = self.with_tags(stored, &mut reader, &mut lost_sets, findings);
                    expected.add(self.entry.number, id, &origin, &body);
                    status.whole.insert(id);
                }
                (body, part) => {
                    let part = body.map_or("the body", |_| part.unwrap_or_default());
                    let PointOrigin { doc_id, ordinal, .. } = origin;
                    let what = format!("{part} of point {point} (number {ordinal} of document {doc_id})");
                    self.report_broken(&what, key, Some(point), findings);
                    status.report_broken.insert(id);
                    status.describe_point_part.insert(point);
                }
            }
        }
        Ok(status)
    }

    /// The body with its tags. If their set is damaged, it is reported once, and the body has no tags.
    fn with_tags(
        &self,
        stored: StoredBody,
        reader: &mut TagReader,
        lost_sets: &mut HashSet<TagSetId>,
        findings: &mut Vec<Finding>,
    ) -> Body {
        let read = reader.read(self.kb, self.txn, self.entry.number, stored.tags.clone());
        if let (Err(_), Some(id)) = (&read, stored.tags.set().filter(|id| lost_sets.insert(*id))) {
            let name = &self.entry.spec.collection;
            let what =
                format!("the tags of points in {name} are damaged; they are set again from the document");
            let key = keys::tag_set(self.entry.number, &id);
            findings.push(Finding::missing(what, "tag_sets", &key, &tag_sets::empty_row()));
        }
        stored.with_tags(read.unwrap_or_default())
    }

    /// The damaged part of a point, apart from its body.
    fn broken_part(&self, key: &[u8], id: u32, point: PointId) -> InternalResult<Option<&'static str>> {
        let dense = self.kb.tables.dense.get(self.txn, key)?;
        let dims = self.entry.dims().unwrap_or_default();
        if dense.is_some_and(|checksummed| {
            verify_checksum(checksummed).and_then(|bytes| StoredVector::decode(bytes, dims)).is_none()
        }) {
            return Ok(Some("the dense vector"));
        }
        let entry = self.kb.tables.ids.get(self.txn, &keys::point(self.entry.number, point))?;
        let has_entry =
            entry.is_some_and(|entry| filter::decode_internal(entry, String::new).ok() == Some(id));
        Ok((!has_entry).then_some("the entry"))
    }

    /// Reports a damaged point, of which all rows are removed.
    fn report_broken(&self, what: &str, key: &[u8], point: Option<PointId>, findings: &mut Vec<Finding>) {
        let mut rows: Vec<_> = ["origins", "bodies", "dense"].map(|table| (table, key.to_vec())).into();
        rows.extend(point.map(|point| ("ids", keys::point(self.entry.number, point).to_vec())));
        let what = format!("{what} in {} is damaged", self.entry.spec.collection);
        findings.push(Finding::unreadable_rows(what, rows));
    }

    /// Reports rows of points without an origin.
    fn check_orphans(
        &self,
        table: Table,
        status: &mut PointStatus,
        findings: &mut Vec<Finding>,
    ) -> InternalResult<()> {
        for row in table.prefix_iter(self.txn, &keys::collection(self.entry.number))? {
            let (key, _) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            status.end = status.end.max(id.saturating_add(1));
            if !status.whole.contains(id) && status.report_broken.insert(id) {
                self.report_broken(&format!("the missing origin of point number {id}"), key, None, findings);
            }
        }
        Ok(())
    }

    /// Reports id entries that lead to no point.
    fn check_id_entries(&self, status: &PointStatus, findings: &mut Vec<Finding>) -> InternalResult<()> {
        for row in self.kb.tables.ids.prefix_iter(self.txn, &keys::collection(self.entry.number))? {
            let (key, entry) = row?;
            let point = keys::point_id(key);
            if point.is_some_and(|point| status.describe_point_part.contains(&point)) {
                continue;
            }
            let id = filter::decode_internal(entry, String::new).ok().filter(|id| status.whole.contains(*id));
            let leads_to = match id {
                Some(id) => rows::origin(self.kb, self.txn, self.entry.number, id).ok(),
                None => None,
            };
            if leads_to.is_none() || leads_to.map(|(point, _)| point) != point {
                let what = format!("an entry of {} leads to no point", self.entry.spec.collection);
                findings.push(Finding::wrong(what, "ids", key));
            }
        }
        Ok(())
    }

    /// Reports damaged id counters. The repair continues above all existing ids. Clusters may contain ids that were
    /// assigned before, so it is rebuilt.
    fn report_ids(&self, end: u32, findings: &mut Vec<Finding>) {
        let what = format!("the ids of {} are damaged or behind", self.entry.spec.collection);
        let ids = registry::IdCounters { next: end, posted: 0, pending_bytes: 0 };
        let key = keys::collection(self.entry.number);
        findings.push(Finding::missing(what, "counters", &key, &registry::encode_ids(ids)));
        let what = "the clusters of vectors may know other points".to_owned();
        findings.push(Finding::wrong(what, "meta", LINEAGE));
    }
}

//! Collections and their points, every row of them.

mod collections;
mod indexes;

use std::collections::HashSet;

use heed::RoTxn;
use lkr_domain::PointId;
use lkr_vectors::PointOrigin;
use roaring::RoaringBitmap;

use self::indexes::Expected;
pub(crate) use self::indexes::index_anew;
use super::{
    filter, keys,
    record::{Body, decode_dense, decode_origin},
    registry::{self, Known, NUMBERS},
    write,
};
use crate::{
    codec::verified,
    env::{Kb, Table},
    error::Done,
    graph::LINEAGE,
    verify::{Finding, counter},
};

/// How long the keys of the rows of points are.
const ROW: usize = 6;

/// Looks at every collection: its points are whole, and its posting lists and bitmaps hold them and no others.
pub(crate) fn verify(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> Done<()> {
    let known = collections::verify(kb, txn, findings)?;
    let reached = known.keys().last().copied().map_or(0, u64::from);
    counter(kb, txn, NUMBERS, reached, findings)?;
    known.values().try_for_each(|known| Points { kb, txn, known }.verify(findings))
}

/// The points of a collection while they are looked at.
struct Points<'k> {
    kb: &'k Kb,
    txn: &'k RoTxn<'k>,
    known: &'k Known,
}

/// Which points are whole, by their internal ids, and which are not.
#[derive(Default)]
struct Sorted {
    whole: RoaringBitmap,
    broken: RoaringBitmap,
    /// Those of the broken ones that are known by name.
    named: HashSet<PointId>,
    /// The first internal id above all.
    end: u32,
}

impl Points<'_> {
    fn verify(&self, findings: &mut Vec<Finding>) -> Done<()> {
        let (before, number) = (findings.len(), self.known.number);
        let ids = registry::ids(self.kb, self.txn, number).ok();
        let mut expected = Expected::new(ids.map_or(0, |ids| ids.posted));
        let mut sorted = self.sort(&mut expected, findings)?;
        for table in [self.kb.tables.bodies, self.kb.tables.dense] {
            self.without_origin(table, &mut sorted, findings)?;
        }
        self.entries(&sorted, findings)?;
        if ids.is_none_or(|ids| ids.next < sorted.end || ids.posted > ids.next) {
            self.counters(sorted.end, findings);
        }
        if findings.len() > before {
            let what =
                format!("the indexes of {} hold points that are not whole", self.known.spec.collection);
            findings.push(Finding::indexes(what, number));
            return Ok(());
        }
        expected.compare(self.kb, self.txn, self.known, findings)
    }

    fn sort(&self, expected: &mut Expected, findings: &mut Vec<Finding>) -> Done<Sorted> {
        let mut sorted = Sorted::default();
        for row in self.kb.tables.origins.prefix_iter(self.txn, &keys::collection(self.known.number))? {
            let (key, sealed) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            sorted.end = sorted.end.max(id.saturating_add(1));
            let origin = verified(sealed).and_then(decode_origin).filter(|_| key.len() == ROW);
            let Some((point, origin)) = origin else {
                sorted.broken.insert(id);
                self.broken(&format!("the origin of point number {id}"), key, None, findings);
                continue;
            };
            let body = self.kb.tables.bodies.get(self.txn, key)?.and_then(verified).and_then(Body::decode);
            match (body, self.broken_part(key, id, point)?) {
                (Some(body), None) => {
                    expected.add(self.known.number, id, &origin, &body);
                    sorted.whole.insert(id);
                }
                (body, part) => {
                    let part = body.map_or("the body", |_| part.unwrap_or_default());
                    let PointOrigin { doc_id, ordinal, .. } = origin;
                    let what = format!("{part} of point {point} (number {ordinal} of document {doc_id})");
                    self.broken(&what, key, Some(point), findings);
                    sorted.broken.insert(id);
                    sorted.named.insert(point);
                }
            }
        }
        Ok(sorted)
    }

    /// What besides the body of a point is not as it should be.
    fn broken_part(&self, key: &[u8], id: u32, point: PointId) -> Done<Option<&'static str>> {
        let dense = self.kb.tables.dense.get(self.txn, key)?;
        let dims = self.known.dims().unwrap_or_default();
        if dense.is_some_and(|sealed| verified(sealed).and_then(|bytes| decode_dense(bytes, dims)).is_none())
        {
            return Ok(Some("the dense vector"));
        }
        let entry = self.kb.tables.ids.get(self.txn, &keys::point(self.known.number, point))?;
        let own = entry.is_some_and(|entry| filter::decode_internal(entry, String::new).ok() == Some(id));
        Ok((!own).then_some("the entry"))
    }

    /// Of a point that is not whole nothing stays.
    fn broken(&self, what: &str, key: &[u8], point: Option<PointId>, findings: &mut Vec<Finding>) {
        let mut rows: Vec<_> = ["origins", "bodies", "dense"].map(|table| (table, key.to_vec())).into();
        rows.extend(point.map(|point| ("ids", keys::point(self.known.number, point).to_vec())));
        let what = format!("{what} in {} is damaged", self.known.spec.collection);
        findings.push(Finding::unreadable_rows(what, rows));
    }

    /// Finds rows of points that have no origin.
    fn without_origin(&self, table: Table, sorted: &mut Sorted, findings: &mut Vec<Finding>) -> Done<()> {
        for row in table.prefix_iter(self.txn, &keys::collection(self.known.number))? {
            let (key, _) = row?;
            let id = keys::row_id(key).unwrap_or_default();
            sorted.end = sorted.end.max(id.saturating_add(1));
            if !sorted.whole.contains(id) && sorted.broken.insert(id) {
                self.broken(&format!("the missing origin of point number {id}"), key, None, findings);
            }
        }
        Ok(())
    }

    /// Finds entries that lead to no point.
    fn entries(&self, sorted: &Sorted, findings: &mut Vec<Finding>) -> Done<()> {
        for row in self.kb.tables.ids.prefix_iter(self.txn, &keys::collection(self.known.number))? {
            let (key, entry) = row?;
            let point = keys::point_id(key);
            if point.is_some_and(|point| sorted.named.contains(&point)) {
                continue;
            }
            let id = filter::decode_internal(entry, String::new).ok().filter(|id| sorted.whole.contains(*id));
            let leads_to = match id {
                Some(id) => write::origin(self.kb, self.txn, self.known.number, id).ok(),
                None => None,
            };
            if leads_to.is_none() || leads_to.map(|(point, _)| point) != point {
                let what = format!("an entry of {} leads to no point", self.known.spec.collection);
                findings.push(Finding::wrong(what, "ids", key));
            }
        }
        Ok(())
    }

    /// The ids go on behind all that are there. A graph may know some that were given before, so it is made anew.
    fn counters(&self, end: u32, findings: &mut Vec<Finding>) {
        let what = format!("the ids of {} are damaged or behind", self.known.spec.collection);
        let ids = registry::Ids { next: end, posted: 0, waiting_bytes: 0 };
        let key = keys::collection(self.known.number);
        findings.push(Finding::missing(what, "counters", &key, &registry::encode_ids(ids)));
        let what = "the vector graphs may know other points".to_owned();
        findings.push(Finding::wrong(what, "meta", LINEAGE));
    }
}

//! Evaluates tests of values by the ordered keys of the bitmaps.

use std::ops::Bound;

use heed::RoTxn;
use lkr_domain::filter::{Operand, Range, ValueTest};
use roaring::{MultiOps, RoaringBitmap};

use super::{
    bitmap::{self, Field, value_keys},
    rows,
    value_key::{MAX_KEY_TEXT_BYTES, ValueKeys, above},
};
use crate::{codec::damaged, env::Kb, error::InternalResult};

/// The tag whose values are tested.
pub(super) struct TestedTag<'k> {
    kb: &'k Kb,
    txn: &'k RoTxn<'k>,
    collection: u16,
    key: &'k str,
    keys: ValueKeys,
}

impl<'k> TestedTag<'k> {
    pub(super) fn new(kb: &'k Kb, txn: &'k RoTxn, collection: u16, key: &'k str) -> Self {
        Self { kb, txn, collection, key, keys: value_keys(collection, key) }
    }

    /// The ids of the points whose value passes.
    pub(super) fn passing(&self, test: &ValueTest) -> InternalResult<RoaringBitmap> {
        match test {
            ValueTest::In(operands) => operands.iter().map(|operand| self.equal(operand)).union(),
            ValueTest::Range(range) => self.within(range, test),
            ValueTest::Prefix(prefix) if prefix.len() <= MAX_KEY_TEXT_BYTES => {
                let begins = self.keys.text_prefix(prefix);
                let (first, _) = self.keys.of_same_type(&begins);
                // Every byte of a text is below FF.
                let last = [&begins[..], &[u8::MAX; 3]].concat();
                self.between(&begins.max(first), &last)
            }
            ValueTest::Prefix(prefix) => self.verified(&self.keys.cut_texts_like(prefix), test),
            ValueTest::Exists(true) => self.parts(&self.keys.present()),
            ValueTest::Exists(false) => {
                let live = bitmap::read(self.kb, self.txn, self.collection, Field::Live)?;
                Ok(live - self.parts(&self.keys.present())?)
            }
        }
    }

    fn equal(&self, operand: &Operand) -> InternalResult<RoaringBitmap> {
        match operand {
            // An empty value equals nothing.
            Operand::Text(text) if text.is_empty() => Ok(RoaringBitmap::new()),
            operand => self.parts(&self.key_of(operand)),
        }
    }

    fn key_of(&self, operand: &Operand) -> Vec<u8> {
        match operand {
            Operand::Number(number) => self.keys.number(*number),
            Operand::Instant(at) => self.keys.instant(*at),
            Operand::Text(text) => self.keys.text(text),
        }
    }

    /// The points within a range: those between the keys of its ends. If the text of an end is cut in its key, whole
    /// values that begin alike are compared.
    fn within(&self, range: &Range, test: &ValueTest) -> InternalResult<RoaringBitmap> {
        let ends = range.ends();
        let (any, mut undecided) = (ends.0.or(ends.1), Vec::new());
        let key = any.map(|end| self.key_of(&end.operand)).unwrap_or_default();
        let (mut first, mut last) = self.keys.of_same_type(&key);
        if let Some(end) = ends.0 {
            let begins = self.cut_text(&end.operand);
            let key = begins.clone().unwrap_or_else(|| self.key_of(&end.operand));
            first =
                first.max(if end.is_included && begins.is_none() { key } else { above_all(key, &begins) });
            undecided.extend(begins);
        }
        if let Some(end) = ends.1 {
            let begins = self.cut_text(&end.operand);
            let key = begins.clone().unwrap_or_else(|| self.key_of(&end.operand));
            last = last.min(if end.is_included && begins.is_none() { above(key) } else { key });
            undecided.extend(begins);
        }
        undecided.dedup();
        let mut ids = self.between(&first, &last)?;
        for begins in undecided {
            ids |= self.verified(&begins, test)?;
        }
        Ok(ids)
    }

    /// What the keys begin with that do not tell on which side of a text they are.
    fn cut_text(&self, operand: &Operand) -> Option<Vec<u8>> {
        match operand {
            Operand::Text(text) if text.len() > MAX_KEY_TEXT_BYTES => Some(self.keys.cut_texts_like(text)),
            _ => None,
        }
    }

    fn parts(&self, key: &[u8]) -> InternalResult<RoaringBitmap> {
        bitmap::read_parts(self.kb, self.txn, key)
    }

    /// The points with keys from `first` on and below `last`.
    fn between(&self, first: &[u8], last: &[u8]) -> InternalResult<RoaringBitmap> {
        if first >= last {
            return Ok(RoaringBitmap::new());
        }
        let range = (Bound::Included(first), Bound::Excluded(last));
        let rows = self.kb.tables.bitmaps.range(self.txn, &range)?;
        rows.map(|row| bitmap::decode(row?.1)).union()
    }

    /// The points whose keys begin like this and whose whole values pass.
    fn verified(&self, begins: &[u8], test: &ValueTest) -> InternalResult<RoaringBitmap> {
        let mut passing = RoaringBitmap::new();
        for row in self.kb.tables.bitmaps.prefix_iter(self.txn, begins)? {
            let ids = bitmap::decode(row?.1)?;
            let first = ids.min().ok_or_else(|| damaged(|| "a filter bitmap".to_owned()))?;
            let body = rows::body(self.kb, self.txn, self.collection, first)?;
            if test.passes(body.tags.get(self.key).map(String::as_str)) {
                passing |= ids;
            }
        }
        Ok(passing)
    }
}

/// Above a value, or above all cut texts that begin alike.
fn above_all(key: Vec<u8>, begins: &Option<Vec<u8>>) -> Vec<u8> {
    // A digest of 16 bytes and two bytes of a part follow.
    if begins.is_some() { [&key[..], &[u8::MAX; 19]].concat() } else { above(key) }
}

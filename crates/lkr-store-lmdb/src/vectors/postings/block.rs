//! A block of a posting list: the number of its entries, the differences of their ids, and their weights unchanged, so that
//! scores are exact. Weights that are multiples of [`STEP`] have two bytes each; the highest bit of the number of entries says
//! so. In formats up to 4, all had four. See docs/studies.md#posting-blocks.

use crate::{
    codec::{FieldReader, damaged, put_varint, strip_checksum, with_checksum},
    error::InternalResult,
    page_check::PAGE_HEADER,
    vectors::keys,
};

/// An id and its weight.
pub(crate) type Entry = (u32, f32);

/// The largest block with its checksum: LMDB gives it a page of its own.
pub(super) const MAX_BYTES: usize = 4_096 - PAGE_HEADER;
/// The bytes in front of the differences: the checksum and the number of entries.
const HEADER_BYTES: usize = 4 + 2;
/// In the number of entries: each weight has two bytes.
const SHORT: u16 = 1 << 15;
/// What the weights of two bytes count.
const STEP: f32 = 1.0 / 16_384.0;

/// A stored block. Its checksum is verified when its entries are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'t> {
    base: u32,
    count: u16,
    is_short: bool,
    checksummed: &'t [u8],
}

impl<'t> Block<'t> {
    pub(crate) fn parse(key: &[u8], checksummed: &'t [u8]) -> InternalResult<Self> {
        let mut fields = FieldReader(checksummed);
        let count = fields.u32().and_then(|_checksum| fields.u16());
        let (base, count) = keys::row_id(key).zip(count).ok_or_else(|| damaged(name))?;
        Ok(Self { base, count: count & !SHORT, is_short: count & SHORT != 0, checksummed })
    }

    /// A lower bound of the ids.
    pub(crate) const fn base(&self) -> u32 {
        self.base
    }

    /// The number of points that contain the term, unless the block is damaged.
    pub(crate) const fn count(&self) -> u16 {
        self.count
    }

    pub(crate) fn entries(&self) -> InternalResult<BlockEntries<'t>> {
        let mut fields = FieldReader(strip_checksum(self.checksummed, name)?);
        fields.u16().ok_or_else(|| damaged(name))?;
        let differences = fields.0.len().checked_sub(width(self.is_short) * usize::from(self.count));
        let split = differences.and_then(|differences| fields.0.split_at_checked(differences));
        let (differences, weights) = split.ok_or_else(|| damaged(name))?;
        let weights = match self.is_short {
            true => Weights::Short(weights.as_chunks().0),
            false => Weights::Long(weights.as_chunks().0),
        };
        Ok(BlockEntries { base: self.base, differences, weights })
    }
}

/// The bytes of a weight.
const fn width(is_short: bool) -> usize {
    if is_short { 2 } else { 4 }
}

fn name() -> String {
    "a block of a posting list".to_owned()
}

/// Little-endian weights at any alignment.
#[derive(Debug, Clone, Copy)]
enum Weights<'t> {
    Short(&'t [[u8; 2]]),
    Long(&'t [[u8; 4]]),
}

impl<'t> Weights<'t> {
    const fn len(self) -> usize {
        match self {
            Self::Short(shorts) => shorts.len(),
            Self::Long(longs) => longs.len(),
        }
    }

    const fn bytes(self) -> &'t [u8] {
        match self {
            Self::Short(shorts) => shorts.as_flattened(),
            Self::Long(longs) => longs.as_flattened(),
        }
    }

    /// The first `count`, and the others.
    fn split_at(self, count: usize) -> (Self, Self) {
        match self {
            Self::Short(shorts) => {
                let (first, rest) = shorts.split_at_checked(count).unwrap_or((shorts, &[]));
                (Self::Short(first), Self::Short(rest))
            }
            Self::Long(longs) => {
                let (first, rest) = longs.split_at_checked(count).unwrap_or((longs, &[]));
                (Self::Long(first), Self::Long(rest))
            }
        }
    }

    /// Calls `visit` with each of the ids and the product of its weight and `factor`, which is never −0. The loop is that of one
    /// kind of weights.
    fn for_each_product(self, ids: impl Iterator<Item = u32>, factor: f64, mut visit: impl FnMut(u32, f64)) {
        // Adding zero makes 0 of −0.
        match self {
            // The step is a power of two, so the product is rounded once, as one with the weight is.
            Self::Short(shorts) if factor > 0.0 => {
                let step = factor * f64::from(STEP);
                ids.zip(shorts)
                    .for_each(|(id, count)| visit(id, step * f64::from(u16::from_le_bytes(*count))));
            }
            Self::Short(shorts) => ids.zip(shorts).for_each(|(id, weight)| {
                visit(id, factor * f64::from(weight_of(*weight)) + 0.0);
            }),
            Self::Long(longs) => ids.zip(longs).for_each(|(id, weight)| {
                visit(id, factor * f64::from(f32::from_le_bytes(*weight)) + 0.0);
            }),
        }
    }
}

/// The verified entries of a block, ordered by id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEntries<'t> {
    base: u32,
    differences: &'t [u8],
    weights: Weights<'t>,
}

impl<'t> BlockEntries<'t> {
    /// Replaces the content of `to` by the entries.
    pub(crate) fn read_into(&self, to: &mut Vec<Entry>) -> InternalResult<()> {
        to.clear();
        to.reserve(self.weights.len());
        match self.weights {
            Weights::Short(shorts) => {
                let mut shorts = shorts.iter();
                self.visit_ids(|id| to.extend(shorts.next().map(|weight| (id, weight_of(*weight)))))
            }
            Weights::Long(longs) => {
                let mut longs = longs.iter();
                self.visit_ids(|id| to.extend(longs.next().map(|weight| (id, f32::from_le_bytes(*weight)))))
            }
        }
    }

    /// Calls `visit` with each id.
    fn visit_ids(&self, mut visit: impl FnMut(u32)) -> InternalResult<()> {
        let (mut fields, mut id) = (FieldReader(self.differences), self.base);
        for _ in 0..self.weights.len() {
            let next = fields.varint().and_then(|difference| id.checked_add(difference));
            id = next.ok_or_else(|| damaged(name))?;
            visit(id);
        }
        Ok(())
    }

    /// The entries, if all differences have one byte, as in most blocks of frequent terms.
    pub(crate) fn near(&self) -> Option<NearEntries<'t>> {
        let all_bits = self.differences.iter().fold(0, |bits, byte| bits | byte);
        if all_bits >= 0x80 || self.differences.len() != self.weights.len() {
            return None;
        }
        let last = self.base.checked_add(self.differences.iter().map(|byte| u32::from(*byte)).sum())?;
        Some(NearEntries { before: self.base, last, differences: self.differences, weights: self.weights })
    }
}

/// Entries whose differences have one byte each, so that they can be read in parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NearEntries<'t> {
    /// What the first difference is added to.
    before: u32,
    /// The last id, or `before` if there are no entries.
    last: u32,
    differences: &'t [u8],
    weights: Weights<'t>,
}

impl NearEntries<'_> {
    /// The first id.
    pub(crate) fn first(&self) -> Option<u32> {
        self.differences.first().map(|difference| self.before.wrapping_add(u32::from(*difference)))
    }

    /// The last id.
    pub(crate) const fn last(&self) -> u32 {
        self.last
    }

    /// Takes the first entries, those whose ids are `admitted`.
    pub(crate) fn take_while(&mut self, admitted: impl Fn(u32) -> bool) -> Self {
        let (mut last, mut count) = (self.before, self.differences.len());
        if admitted(self.last) {
            last = self.last;
        } else {
            for (at, difference) in self.differences.iter().enumerate() {
                let id = last.wrapping_add(u32::from(*difference));
                if !admitted(id) {
                    count = at;
                    break;
                }
                last = id;
            }
        }
        let (differences, other_differences) = self.differences.split_at_checked(count).unwrap_or_default();
        let (weights, other_weights) = self.weights.split_at(count);
        let taken = Self { before: self.before, last, differences, weights };
        *self =
            Self { before: last, last: self.last, differences: other_differences, weights: other_weights };
        taken
    }

    /// Calls `visit` with each id and the product of its weight and `factor`, which is never −0.
    pub(crate) fn for_each_product(self, factor: f64, visit: impl FnMut(u32, f64)) {
        let mut id = self.before;
        let ids = self.differences.iter().map(move |difference| {
            id = id.wrapping_add(u32::from(*difference));
            id
        });
        self.weights.for_each_product(ids, factor, visit);
    }
}

/// A block that grows at its end, until it is as large as a block may be.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    base: u32,
    last: u32,
    count: u16,
    differences: Vec<u8>,
    /// Two bytes for each entry if `is_short`, else four.
    weights: Vec<u8>,
    is_short: bool,
}

impl BlockBuilder {
    pub(super) const fn new(base: u32) -> Self {
        Self { base, last: base, count: 0, differences: Vec::new(), weights: Vec::new(), is_short: true }
    }

    /// Continues a stored block.
    pub(super) fn of(block: &Block) -> InternalResult<Self> {
        let entries = block.entries()?;
        let mut last = entries.base;
        match entries.near() {
            Some(near) => last = near.last(),
            None => entries.visit_ids(|id| last = id)?,
        }
        Ok(Self {
            base: entries.base,
            last,
            count: block.count,
            differences: entries.differences.to_vec(),
            weights: entries.weights.bytes().to_vec(),
            is_short: block.is_short,
        })
    }

    pub(super) const fn base(&self) -> u32 {
        self.base
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) const fn len(&self) -> usize {
        self.count as usize
    }

    /// The size of the block with its checksum.
    pub(super) const fn bytes(&self) -> usize {
        HEADER_BYTES + self.differences.len() + self.weights.len()
    }

    /// Whether the block with another entry is not too large. One entry always is small enough.
    pub(super) fn fits(&self, (id, weight): Entry) -> bool {
        let width = width(self.is_short && short_of(weight).is_some());
        let difference = id.wrapping_sub(self.last).max(1).ilog2() as usize / 7 + 1;
        let bytes = HEADER_BYTES + self.differences.len() + difference + (self.len() + 1) * width;
        bytes <= MAX_BYTES || self.is_empty()
    }

    /// Whether the block with all entries of a later one is not too large.
    pub(super) const fn fits_all_of(&self, later: &Block) -> bool {
        self.is_short == later.is_short && self.bytes() + later.checksummed.len() <= MAX_BYTES
    }

    /// Adds an entry whose id is above those of the others.
    pub(super) fn push(&mut self, (id, weight): Entry) {
        put_varint(&mut self.differences, id.wrapping_sub(self.last));
        self.last = id;
        self.count += 1;
        match short_of(weight).filter(|_| self.is_short) {
            Some(short) => self.weights.extend_from_slice(&short),
            None => {
                self.widen();
                self.weights.extend_from_slice(&weight.to_le_bytes());
            }
        }
    }

    /// Gives each weight four bytes.
    fn widen(&mut self) {
        if self.is_short {
            let shorts = self.weights.as_chunks().0.iter();
            self.weights = shorts.flat_map(|short| weight_of(*short).to_le_bytes()).collect();
            self.is_short = false;
        }
    }

    /// The row of the block.
    pub(super) fn row(&self) -> Vec<u8> {
        let count = self.count | if self.is_short { SHORT } else { 0 };
        with_checksum(&[&count.to_le_bytes()[..], &self.differences, &self.weights].concat())
    }
}

/// The weight in two bytes, if it is a multiple of the step that fits into them.
fn short_of(weight: f32) -> Option<[u8; 2]> {
    let bytes = ((weight / STEP) as u16).to_le_bytes();
    (weight_of(bytes).to_bits() == weight.to_bits()).then_some(bytes)
}

/// The weight that two bytes stand for.
fn weight_of(bytes: [u8; 2]) -> f32 {
    f32::from(u16::from_le_bytes(bytes)) * STEP
}

#[cfg(test)]
pub(in crate::vectors) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::FailureKind;

    /// The row of entries in one block, however large.
    pub(in crate::vectors) fn encode(base: u32, entries: &[Entry]) -> Vec<u8> {
        let mut block = BlockBuilder::new(base);
        entries.iter().for_each(|entry| block.push(*entry));
        block.row()
    }

    /// The same as formats up to 4 had it.
    pub(in crate::vectors) fn encode_as_format_4(base: u32, entries: &[Entry]) -> Vec<u8> {
        let mut block = BlockBuilder::new(base);
        block.widen();
        entries.iter().for_each(|entry| block.push(*entry));
        block.row()
    }

    fn decoded(base: u32, stored: &[u8]) -> InternalResult<Vec<Entry>> {
        let mut entries = vec![(7, 7.0)];
        Block::parse(&base.to_be_bytes(), stored)?.entries()?.read_into(&mut entries)?;
        Ok(entries)
    }

    /// Weights that two bytes have, and others.
    fn weight() -> impl Strategy<Value = f32> {
        let short = any::<u16>().prop_map(|steps| weight_of(steps.to_le_bytes()));
        prop_oneof![9 => short, 1 => any::<u32>().prop_map(|bits| f32::from_bits(bits & 0xbfff_ffff))]
    }

    fn entries(most: usize) -> impl Strategy<Value = (u32, Vec<Entry>)> {
        let difference = prop_oneof![9 => 0_u32..128, 1 => 0_u32..100_000];
        let base = prop_oneof![Just(0), any::<u32>(), u32::MAX - 200..=u32::MAX];
        let all_shorts = any::<bool>();
        (base, prop::collection::vec((difference, weight()), 1..most), all_shorts).prop_map(
            |(base, entries, all_shorts)| {
                let mut id = base;
                let mut of_block = Vec::new();
                for (difference, weight) in entries {
                    let Some(next) = id.checked_add(difference) else { break };
                    id = next;
                    of_block.push((
                        id,
                        if all_shorts { (weight.clamp(0.0, 3.0) / STEP).floor() * STEP } else { weight },
                    ));
                }
                (base, of_block)
            },
        )
    }

    proptest! {
        #[test]
        fn block_has_the_entries_that_were_encoded((base, entries) in entries(300)) {
            for row in [encode(base, &entries), encode_as_format_4(base, &entries)] {
                prop_assert_eq!(&decoded(base, &row).unwrap(), &entries);
                let block = Block::parse(&base.to_be_bytes(), &row).unwrap();
                prop_assert_eq!(usize::from(block.count()), entries.len());
                let continued = BlockBuilder::of(&block).unwrap();
                prop_assert_eq!((continued.row(), continued.bytes()), (row.clone(), row.len()));
            }
        }

        #[test]
        fn blocks_grow_to_a_page((base, entries) in entries(3_000)) {
            let (mut block, mut rows) = (BlockBuilder::new(base), Vec::new());
            for entry in &entries {
                if !block.fits(*entry) {
                    rows.push((block.base(), block.row()));
                    block = BlockBuilder::new(entry.0);
                }
                block.push(*entry);
            }
            rows.push((block.base(), block.row()));
            let read = rows.iter().flat_map(|(base, row)| decoded(*base, row).unwrap()).collect::<Vec<_>>();
            prop_assert_eq!(&read, &entries);
            prop_assert!(rows.iter().all(|(_, row)| row.len() <= MAX_BYTES));
            // At most half of a block is lost where weights of four bytes begin.
            let full = rows.iter().rev().skip(1);
            prop_assert!(full.clone().all(|(_, row)| row.len() > MAX_BYTES / 2), "{:?}", full.map(|(_, row)| row.len()).collect::<Vec<_>>());
        }

        #[test]
        fn near_entries_are_read_in_parts(
            (base, entries) in entries(300), ends in prop::collection::vec(any::<u16>(), 0..5),
            factor in prop_oneof![0.0_f64..20.0, -2.0_f64..0.0, Just(0.0), Just(-0.0), Just(f64::INFINITY)],
        ) {
            let row = encode(base, &entries);
            let block = Block::parse(&base.to_be_bytes(), &row).unwrap().entries().unwrap();
            let is_near = entries.iter().scan(base, |last, (id, _)| Some(id - std::mem::replace(last, *id))).all(|difference| difference < 128);
            let near = block.near();
            prop_assert_eq!(near.is_some(), is_near);
            let Some(mut near) = near else { return Ok(()) };
            let mut ends: Vec<u32> = ends.into_iter().map(|end| base.saturating_add(u32::from(end))).collect();
            ends.sort_unstable();
            let mut read = Vec::new();
            for end in ends.into_iter().map(Some).chain([None]) {
                let part = near.take_while(|id| end.is_none_or(|end| id < end));
                let before = read.len();
                part.for_each_product(factor, |id, product| read.push((id, product.to_bits())));
                prop_assert!(read.len() == before || read.last().is_some_and(|(id, _)| *id == part.last()));
                prop_assert_eq!(near.first(), entries.get(read.len()).map(|(id, _)| *id));
            }
            let product = |weight: f32| (factor * f64::from(weight) + 0.0).to_bits();
            let products = entries.iter().map(|(id, weight)| (*id, product(*weight)));
            prop_assert_eq!(read, products.collect::<Vec<_>>());
        }
    }

    #[test]
    fn multiples_of_the_step_take_two_bytes() {
        let of =
            |weights: &[f32]| encode(7, &weights.iter().map(|weight| (7, *weight)).collect::<Vec<_>>()).len();
        let shorts = [0.0, STEP, 1.5, 65_535.0 * STEP];
        assert_eq!(of(&shorts), HEADER_BYTES + 4 * (1 + 2));
        for other in [0.1, STEP / 2.0, 4.0, -1.5, -0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY] {
            assert_eq!(of(&[1.5, 0.0, other]), HEADER_BYTES + 3 * (1 + 4), "{other}");
        }
    }

    #[test]
    fn malformed_block_is_reported() {
        // One difference that has no end, and a sum of differences that is no id.
        for (base, ids) in [(0, [5, 0x80]), (u32::MAX - 9, [5, 5])] {
            let stored = with_checksum(&[&[2, 0][..], &ids, &[0; 8]].concat());
            assert_eq!(decoded(base, &stored).unwrap_err().kind(), FailureKind::Corrupt);
        }
        // More weights than bytes.
        for count in [[3, 0], [5, 0x80]] {
            let stored = with_checksum(&[&count[..], &[0; 9]].concat());
            assert_eq!(decoded(0, &stored).unwrap_err().kind(), FailureKind::Corrupt);
        }
    }
}

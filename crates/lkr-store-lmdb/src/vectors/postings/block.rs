//! A block of a posting list: the number of its entries, the differences of their ids, and their weights unchanged, so that
//! scores are exact.

use crate::{
    codec::{FieldReader, damaged, put_varint, strip_checksum, with_checksum},
    error::InternalResult,
    vectors::keys,
};

/// An id and its weight.
pub(crate) type Entry = (u32, f32);

/// A stored block. Its checksum is verified when its entries are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'t> {
    base: u32,
    count: u16,
    checksummed: &'t [u8],
}

impl<'t> Block<'t> {
    pub(crate) fn parse(key: &[u8], checksummed: &'t [u8]) -> InternalResult<Self> {
        let mut fields = FieldReader(checksummed);
        let count = fields.u32().and_then(|_checksum| fields.u16());
        let (base, count) = keys::row_id(key).zip(count).ok_or_else(|| damaged(name))?;
        Ok(Self { base, count, checksummed })
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
        let count = fields.u16().ok_or_else(|| damaged(name))?;
        let differences = fields.0.len().checked_sub(4 * usize::from(count));
        let split = differences.and_then(|differences| fields.0.split_at_checked(differences));
        let (differences, weights) = split.ok_or_else(|| damaged(name))?;
        Ok(BlockEntries { base: self.base, differences, weights: weights.as_chunks::<4>().0 })
    }
}

fn name() -> String {
    "a block of a posting list".to_owned()
}

/// The verified entries of a block, ordered by id.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEntries<'t> {
    base: u32,
    differences: &'t [u8],
    weights: &'t [[u8; 4]],
}

impl BlockEntries<'_> {
    /// Replaces the content of `to` by the entries.
    pub(crate) fn read_into(&self, to: &mut Vec<Entry>) -> InternalResult<()> {
        to.clear();
        if self.last_near_id().is_some() {
            to.extend(self.near());
            return Ok(());
        }
        let (mut fields, mut id) = (FieldReader(self.differences), self.base);
        for weight in self.weights {
            id = fields
                .varint()
                .and_then(|difference| id.checked_add(difference))
                .ok_or_else(|| damaged(name))?;
            to.push((id, f32::from_le_bytes(*weight)));
        }
        Ok(())
    }

    /// The last id, if all differences have one byte, as in most blocks of frequent terms.
    pub(crate) fn last_near_id(&self) -> Option<u32> {
        let all_bits = self.differences.iter().fold(0, |bits, byte| bits | byte);
        if all_bits >= 0x80 || self.differences.len() != self.weights.len() {
            return None;
        }
        self.base.checked_add(self.differences.iter().map(|byte| u32::from(*byte)).sum())
    }

    /// The entries, if they have a [last near id](Self::last_near_id).
    pub(crate) fn near(&self) -> impl Iterator<Item = Entry> {
        let mut id = self.base;
        self.differences.iter().zip(self.weights).map(move |(difference, weight)| {
            id = id.wrapping_add(u32::from(*difference));
            (id, f32::from_le_bytes(*weight))
        })
    }
}

pub(in crate::vectors) fn encode(base: u32, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(2 + 6 * entries.len());
    bytes.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    let mut last = base;
    for (id, _) in entries {
        put_varint(&mut bytes, id - last);
        last = *id;
    }
    entries.iter().for_each(|(_, weight)| bytes.extend_from_slice(&weight.to_le_bytes()));
    with_checksum(&bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::error::FailureKind;

    fn decoded(base: u32, stored: &[u8]) -> InternalResult<Vec<Entry>> {
        let mut entries = vec![(7, 7.0)];
        Block::parse(&base.to_be_bytes(), stored)?.entries()?.read_into(&mut entries)?;
        Ok(entries)
    }

    proptest! {
        #[test]
        fn block_has_the_entries_that_were_encoded(
            base in prop_oneof![Just(0), any::<u32>(), u32::MAX - 200..=u32::MAX],
            differences in prop::collection::vec((prop_oneof![9 => 0_u32..128, 1 => 0_u32..100_000], any::<u32>()), 1..128),
        ) {
            let (mut id, mut entries) = (base, Vec::new());
            for (difference, bits) in differences {
                let Some(next) = id.checked_add(difference) else { break };
                id = next;
                entries.push((id, f32::from_bits(bits & 0x3fff_ffff)));
            }
            prop_assert_eq!(decoded(base, &encode(base, &entries)).unwrap(), entries);
        }
    }

    #[test]
    fn malformed_block_is_reported() {
        // One difference that has no end, and a sum of differences that is no id.
        for (base, ids) in [(0, [5, 0x80]), (u32::MAX - 9, [5, 5])] {
            let stored = with_checksum(&[&[2, 0][..], &ids, &[0; 8]].concat());
            assert_eq!(decoded(base, &stored).unwrap_err().kind(), FailureKind::Corrupt);
        }
    }
}

//! Checksums, and a reader of binary fields that refuses truncated input.

use std::borrow::Cow;

use crate::error::{Failure, InternalResult};

/// The polynomial of CRC-32C, the lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82F6_3B78;

/// Prepends the CRC-32C of `payload`. LMDB has no checksums, so every record carries its own.
pub(crate) fn with_checksum(payload: &[u8]) -> Vec<u8> {
    let mut checksummed = Vec::with_capacity(4 + payload.len());
    checksummed.extend_from_slice(&crc_fast::crc32_iscsi(payload).to_le_bytes());
    checksummed.extend_from_slice(payload);
    checksummed
}

/// The payload after verifying its checksum; `Corrupt` with the item's name on a mismatch.
pub(crate) fn strip_checksum(checksummed: &[u8], name: impl FnOnce() -> String) -> InternalResult<&[u8]> {
    verify_checksum(checksummed).ok_or_else(|| damaged(name))
}

/// The payload after verifying its checksum; `None` on a mismatch.
pub(crate) fn verify_checksum(checksummed: &[u8]) -> Option<&[u8]> {
    let (crc, payload) = checksummed.split_first_chunk::<4>()?;
    (u32::from_le_bytes(*crc) == crc_fast::crc32_iscsi(payload)).then_some(payload)
}

/// The row with a single flipped bit corrected; `None` if more is wrong. Each bit changes the checksum differently,
/// so the difference identifies the bit.
pub(crate) fn correct_bit_flip(checksummed: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (crc, payload) = checksummed.split_first_chunk::<4>()?;
    let difference = u32::from_le_bytes(*crc) ^ crc_fast::crc32_iscsi(payload);
    if difference == 0 {
        return Some(Cow::Borrowed(checksummed));
    }
    if difference.is_power_of_two() {
        return Some(Cow::Owned(with_checksum(payload)));
    }
    let mut corrected = payload.to_vec();
    let mut changes = POLYNOMIAL;
    for byte in corrected.iter_mut().rev() {
        for bit in (0..8).rev() {
            if changes == difference {
                *byte ^= 1 << bit;
                return Some(Cow::Owned(with_checksum(&corrected)));
            }
            changes = (changes >> 1) ^ if changes & 1 == 1 { POLYNOMIAL } else { 0 };
        }
    }
    None
}

pub(crate) fn damaged(name: impl FnOnce() -> String) -> Failure {
    Failure::corrupt(format!("{} is damaged", name()))
}

/// Reads numbers and bytes from the front of a slice.
pub(crate) struct FieldReader<'a>(pub(crate) &'a [u8]);

impl<'a> FieldReader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*array)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of at most 32 bits, seven of them a byte, the lowest first.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u32> {
        // Nearly all numbers have one byte or two.
        match self.0 {
            [low @ ..0x80, rest @ ..] => {
                self.0 = rest;
                return Some(u32::from(*low));
            }
            [low, high @ ..0x80, rest @ ..] => {
                self.0 = rest;
                return Some(u32::from(*low & 0x7f) | u32::from(*high) << 7);
            }
            _ => {}
        }
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }
}

/// Appends what [`FieldReader::varint`] reads.
pub(crate) fn put_varint(to: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn single_flipped_bit_is_corrected(payload: Vec<u8>, at: usize, other: usize) {
            let checksummed = with_checksum(&payload);
            let mut flipped = checksummed.clone();
            let bits = flipped.len() * 8;
            let (at, other) = (at % bits, other % bits);
            flipped[at / 8] ^= 1 << (at % 8);
            prop_assert!(correct_bit_flip(&flipped).is_some_and(|whole| *whole == checksummed[..]));
            // Two flipped ones are not taken for one.
            flipped[other / 8] ^= 1 << (other % 8);
            prop_assert_eq!(correct_bit_flip(&flipped).is_some_and(|whole| *whole == checksummed[..]), at == other);
            prop_assert_eq!(correct_bit_flip(&flipped).is_some(), at == other);
        }

        #[test]
        fn varints_round_trip(values in proptest::collection::vec(any::<u32>(), 0..20)) {
            let mut bytes = Vec::new();
            values.iter().for_each(|value| put_varint(&mut bytes, *value));
            let mut fields = FieldReader(&bytes);
            for value in values {
                prop_assert_eq!(fields.varint(), Some(value));
            }
            prop_assert!(fields.0.is_empty());
        }

        #[test]
        fn any_flipped_bit_is_detected(payload in proptest::collection::vec(any::<u8>(), 0..64), at: usize, bit in 0u8..8) {
            let mut checksummed = with_checksum(&payload);
            prop_assert_eq!(strip_checksum(&checksummed, || "it".into()).unwrap(), &payload[..]);
            let at = at % checksummed.len();
            checksummed[at] ^= 1u8 << bit;
            prop_assert!(strip_checksum(&checksummed, || "it".into()).is_err());
        }
    }

    #[test]
    fn truncated_number_returns_none() {
        assert_eq!(FieldReader(&[1, 2, 3]).u32(), None);
        assert_eq!(FieldReader(&[0x80]).varint(), None);
        assert_eq!(FieldReader(&[0xff; 6]).varint(), None);
    }
}

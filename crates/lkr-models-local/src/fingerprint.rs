//! The id of a model: fast to compute, and different for different vectors.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The id of the published files of all-MiniLM-L6-v2.
pub(crate) const MINILM_ID: &str = "d829131716d86caf9232bc4fcd3e04c3";

/// The number of blocks of the weights that are read, at equal distances.
const BLOCKS: usize = 64;
/// The length of a block in bytes.
const BLOCK: usize = 16 * 1024;

/// The id of the model with these weights, tokenizer and settings: 128 bits in hexadecimal.
///
/// One megabyte of the weights is hashed, spread over the file, with the length and the header of the file. Hashing all
/// of them would take longer than the rest of the start.
pub(crate) fn fingerprint(weights: &[u8], tokenizer: &[u8], settings: &str) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(settings.as_bytes());
    part(tokenizer);
    part(&weights.len().to_le_bytes());
    part(header(weights));
    let step = (weights.len() / BLOCKS).max(1);
    for block in weights.chunks(step) {
        part(block.get(..BLOCK).unwrap_or(block));
    }
    part(weights.get(weights.len().saturating_sub(BLOCK)..).unwrap_or_default());
    hash.finalize().iter().take(16).fold(String::new(), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}

/// The header of a safetensors file with its length.
fn header(weights: &[u8]) -> &[u8] {
    let length = weights.first_chunk().map_or(0, |&length| u64::from_le_bytes(length));
    usize::try_from(length).ok().and_then(|length| weights.get(..length.checked_add(8)?)).unwrap_or_default()
}

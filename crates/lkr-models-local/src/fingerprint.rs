//! An id for a model that is quick to find and changes with whatever changes its vectors.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// How many blocks of the weights are read, at even distances.
const BLOCKS: usize = 64;
/// The length of a block in bytes.
const BLOCK: usize = 16 * 1024;

/// The id of the model with these weights, tokenizer and settings: 128 bits in hexadecimal.
///
/// Of the weights a megabyte is hashed, spread over the file, with the file's length and its header; hashing all of
/// them would take longer than everything else at the start.
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

/// The header of a safetensors file, its length first.
fn header(weights: &[u8]) -> &[u8] {
    let length = weights.first_chunk().map_or(0, |&length| u64::from_le_bytes(length));
    usize::try_from(length).ok().and_then(|length| weights.get(..length.checked_add(8)?)).unwrap_or_default()
}

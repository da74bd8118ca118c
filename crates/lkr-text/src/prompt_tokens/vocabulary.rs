//! Membership in the vocabulary o200k_base, by a Bloom filter of its tokens.
//!
//! `o200k_base.bloom` was made from the vocabulary that OpenAI publishes with tiktoken (MIT licence). A test makes it again
//! and compares.

/// The bits of the filter, the lowest bit of each byte first.
static FILTER: &[u8] = include_bytes!("o200k_base.bloom");

/// 16 bits for each token, so that one in 2,000 other strings passes for a token (Bloom 1970).
const FILTER_BYTES: usize = 400_000;
const PROBES: u64 = 11;

/// Longer tokens are ignored: they are runs of one character.
pub(super) const MAX_TOKEN_BYTES: usize = 32;

/// The hashes of the prefixes of `bytes`, from the first byte on: 64-bit FNV-1a.
pub(super) fn prefix_hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.iter().scan(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        *hash = (*hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Some(*hash)
    })
}

/// Whether a token has this hash.
pub(super) fn contains(hash: u64) -> bool {
    bits(hash).all(|bit| FILTER.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
}

/// The bits of a hash, by double hashing (Kirsch and Mitzenmacher 2006).
fn bits(hash: u64) -> impl Iterator<Item = usize> {
    // FNV-1a mixes its last bytes little; this is the finaliser of SplitMix64.
    let mixed = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let (first, step) = (mixed >> 32, (mixed & 0xffff_ffff) | 1);
    (0..PROBES).map(move |probe| {
        let bit = first.wrapping_add(probe.wrapping_mul(step)) % (8 * FILTER_BYTES as u64);
        usize::try_from(bit).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(bytes: &[u8]) -> u64 {
        prefix_hashes(bytes).last().unwrap()
    }

    /// To make the file again, run this test with LKR_WRITE_FILTER set to its path.
    #[test]
    fn filter_is_that_of_the_vocabulary() {
        let vocabulary = &bpe_openai::o200k_base().bpe;
        let mut filter = vec![0_u8; FILTER_BYTES];
        for token in 0..u32::try_from(vocabulary.num_tokens()).unwrap() {
            let token = vocabulary.token_bytes(token);
            if token.len() <= MAX_TOKEN_BYTES && str::from_utf8(token).is_ok() {
                bits(hash(token)).for_each(|bit| filter[bit / 8] |= 1 << (bit % 8));
            }
        }
        if let Some(path) = std::env::var_os("LKR_WRITE_FILTER") {
            std::fs::write(path, &filter).unwrap();
            return;
        }
        assert!(filter == FILTER, "o200k_base.bloom differs from the filter of the vocabulary");
    }

    #[test]
    fn few_other_strings_pass_for_tokens() {
        let passed = (0..100_000).filter(|n| contains(hash(format!("no token {n}").as_bytes()))).count();
        assert!(passed < 200, "{passed} of 100,000");
        assert!([" the", "ization", "東京"].iter().all(|token| contains(hash(token.as_bytes()))));
    }
}

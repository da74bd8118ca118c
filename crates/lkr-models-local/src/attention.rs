//! Attention within sequences.

use std::ops::Range;

use lkr_models::Result;
use pulp::Arch;

use crate::kernels;
use crate::panels::Panels;
use crate::product::{FloatRows, Rows, RowsMut, product};
use crate::scratch::sized;

/// The number of query rows of a head that are processed at a time, so that their scores stay in the cache.
const QUERY_BLOCK: usize = 48;
/// The same where a token sees its neighbours only: each block has scores for all that one of its rows sees, so a small block
/// computes fewer scores that no row needs.
const LOCAL_QUERY_BLOCK: usize = 64;

/// The number of tokens of each sequence; the tokens of all are concatenated.
#[derive(Debug)]
pub(crate) struct Lengths(Vec<usize>);

impl Lengths {
    pub(crate) const fn new(lengths: Vec<usize>) -> Self {
        Self(lengths)
    }

    pub(crate) fn tokens(&self) -> usize {
        self.0.iter().sum()
    }

    /// The part of each sequence in `rows`, which have `width` numbers.
    pub(crate) fn split<'a>(&self, rows: &'a [f32], width: usize) -> impl Iterator<Item = &'a [f32]> {
        self.0.iter().scan(rows, move |rest, &length| {
            let (own, after) = rest.split_at_checked(length * width)?;
            *rest = after;
            Some(own)
        })
    }

    /// As [`Self::split`], to change the rows.
    pub(crate) fn split_mut<'a>(
        &self,
        rows: &'a mut [f32],
        width: usize,
    ) -> impl Iterator<Item = &'a mut [f32]> {
        self.0.iter().scan(rows, move |rest, &length| {
            let (own, after) = std::mem::take(rest).split_at_mut_checked(length * width)?;
            *rest = after;
            Some(own)
        })
    }
}

/// The heads of a layer, and which tokens see each other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heads {
    pub(crate) hidden: usize,
    /// The dimensions of a head.
    pub(crate) dims: usize,
    /// The most tokens between two that see each other; without it all do.
    pub(crate) reach: Option<usize>,
}

/// Buffers that calls reuse.
#[derive(Debug, Default)]
pub(crate) struct AttentionScratch {
    /// The keys and the values of a head.
    keys: Panels,
    values: Panels,
    scores: Vec<f32>,
    /// The rows of a product.
    rows: FloatRows,
}

/// Attention within each sequence: softmax(Q · Kᵀ / √d) · V for each head, written to `context`. `qkv` has queries, keys and
/// values side by side.
pub(crate) fn attend(
    arch: Arch,
    heads: Heads,
    lengths: &Lengths,
    qkv: &[f32],
    context: &mut [f32],
    scratch: &mut AttentionScratch,
) -> Result<()> {
    let sequences = lengths.split(qkv, heads.hidden * 3).zip(lengths.split_mut(context, heads.hidden));
    for (qkv, context) in sequences {
        attend_within(arch, heads, qkv, context, scratch)?;
    }
    Ok(())
}

fn attend_within(
    arch: Arch,
    heads: Heads,
    qkv: &[f32],
    context: &mut [f32],
    AttentionScratch { keys, values, scores, rows }: &mut AttentionScratch,
) -> Result<()> {
    let Heads { hidden, dims, .. } = heads;
    let (stride, tokens) = (hidden * 3, context.len() / hidden);
    let scale = 1.0 / (dims as f32).sqrt();
    for head in (0..hidden).step_by(dims) {
        let mut loaded = 0..0;
        for block in heads.blocks(tokens) {
            let seen = heads.seen(&block, tokens);
            if seen != loaded {
                let numbers = qkv.get(seen.start * stride..seen.end * stride).unwrap_or_default();
                keys.set_columns(arch, dims, parts(numbers, stride, hidden + head, dims));
                values.set_rows(arch, dims, parts(numbers, stride, 2 * hidden + head, dims));
                loaded = seen.clone();
            }
            let (count, width) = (block.len(), seen.len());
            let numbers = qkv.get(block.start * stride + head..).unwrap_or_default();
            let scores = sized(scores, count * width);
            let out = &mut RowsMut { numbers: scores, stride: width };
            product(arch, Rows { numbers, count, stride }, keys, out, rows)?;
            heads.hide_unseen(scores, &block, &seen);
            kernels::softmax(arch, scores, width, scale);
            let out = context.get_mut(block.start * hidden + head..).unwrap_or_default();
            let out = &mut RowsMut { numbers: out, stride: hidden };
            product(arch, Rows { numbers: scores, count, stride: width }, values, out, rows)?;
        }
    }
    Ok(())
}

impl Heads {
    /// The queries that are processed at a time.
    fn blocks(self, tokens: usize) -> impl Iterator<Item = Range<usize>> {
        let size = if self.reach.is_some() { LOCAL_QUERY_BLOCK } else { QUERY_BLOCK };
        (0..tokens).step_by(size).map(move |first| first..tokens.min(first + size))
    }

    /// The tokens that one of the queries sees.
    fn seen(self, queries: &Range<usize>, tokens: usize) -> Range<usize> {
        let reach = self.reach.unwrap_or(tokens);
        queries.start.saturating_sub(reach)..queries.end.saturating_add(reach).min(tokens)
    }

    /// Replaces the scores of tokens that a query does not see, so that their weights are 0.
    fn hide_unseen(self, scores: &mut [f32], queries: &Range<usize>, seen: &Range<usize>) {
        let Some(reach) = self.reach else { return };
        for (query, row) in queries.clone().zip(scores.chunks_exact_mut(seen.len().max(1))) {
            let first = query.saturating_sub(reach).saturating_sub(seen.start).min(row.len());
            let end = query.saturating_add(reach).saturating_add(1).saturating_sub(seen.start).min(row.len());
            let (before, rest) = row.split_at_mut(first);
            let (_, after) = rest.split_at_mut(end.saturating_sub(first).min(rest.len()));
            before.fill(f32::NEG_INFINITY);
            after.fill(f32::NEG_INFINITY);
        }
    }
}

/// The `len` numbers from index `start` on of each row.
fn parts(rows: &[f32], stride: usize, start: usize, len: usize) -> impl ExactSizeIterator<Item = &[f32]> {
    rows.chunks_exact(stride).map(move |row| row.get(start..start + len).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Attention by its definition, in double precision.
    fn expected(heads: Heads, qkv: &[f32]) -> Vec<f64> {
        let Heads { hidden, dims, reach } = heads;
        let rows: Vec<&[f32]> = qkv.chunks(3 * hidden).collect();
        let mut out = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            for dim in 0..hidden {
                let head = dim / dims * dims;
                let weights: Vec<f64> = rows
                    .iter()
                    .enumerate()
                    .map(|(other, key)| {
                        let dot = (head..head + dims)
                            .map(|i| f64::from(row[i]) * f64::from(key[hidden + i]))
                            .sum::<f64>();
                        let is_seen = reach.is_none_or(|reach| at.abs_diff(other) <= reach);
                        if is_seen { (dot / (dims as f64).sqrt()).exp() } else { 0.0 }
                    })
                    .collect();
                let total: f64 = weights.iter().sum();
                let values = rows.iter().map(|row| f64::from(row[2 * hidden + dim]));
                out.push(
                    weights.iter().zip(values).map(|(weight, value)| weight * value).sum::<f64>() / total,
                );
            }
        }
        out
    }

    fn number(at: usize) -> f32 {
        ((at * 7919 + 13) % 1009) as f32 / 504.0 - 1.0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Lengths around the blocks, reaches from none to more than the sequence.
        #[test]
        fn attention_is_that_of_the_definition(
            lengths in prop::collection::vec(1_usize..300, 1..3),
            reach in prop::option::of(prop::sample::select(vec![0, 1, 5, 63, 64, 65, 400, usize::MAX])),
        ) {
            let heads = Heads { hidden: 8, dims: 4, reach };
            let numbers: Vec<f32> = (0..lengths.iter().sum::<usize>() * 24).map(number).collect();
            for arch in [Arch::new(), Arch::Scalar] {
                let lengths = Lengths::new(lengths.clone());
                let mut context = vec![0.0; lengths.tokens() * 8];
                attend(arch, heads, &lengths, &numbers, &mut context, &mut AttentionScratch::default()).unwrap();
                let expected = lengths.split(&numbers, 24).flat_map(|qkv| expected(heads, qkv));
                for (found, expected) in context.iter().zip(expected) {
                    prop_assert!((f64::from(*found) - expected).abs() < 1e-5, "{found}, not {expected}");
                }
            }
        }
    }

    /// A local layer must not compute the scores of all pairs.
    #[test]
    fn scores_of_a_local_layer_grow_with_the_reach_only() {
        let heads = Heads { hidden: 8, dims: 4, reach: Some(64) };
        let scores: usize =
            heads.blocks(8192).map(|block| block.len() * heads.seen(&block, 8192).len()).sum();
        assert!(scores <= 8192 * 192, "{scores} scores");
    }
}

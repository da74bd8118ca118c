//! Rotary positions: a query and a key are rotated by angles that grow with their positions, so that their product depends on
//! the distance (Su et al., RoFormer, 2021).

use std::sync::Arc;

use lkr_models::Result;
use pulp::Arch;

use crate::attention::Heads;
use crate::config::{Family, ModelConfig};
use crate::error;
use crate::kernels::vectorized;

/// The angles of a model's layers. A model without rotary positions has none.
#[derive(Debug, Default)]
pub(crate) struct Rotaries {
    global: Arc<Rotary>,
    local: Arc<Rotary>,
}

impl Rotaries {
    /// The angles of texts with up to `max_tokens` tokens.
    pub(crate) fn new(config: &ModelConfig, max_tokens: usize) -> Self {
        let Family::ModernBert(modern) = &config.family else { return Self::default() };
        let of = |theta| Arc::new(Rotary::new(theta, config.head_dims(), max_tokens));
        Self { global: of(modern.global_theta), local: of(modern.local_theta) }
    }

    pub(crate) fn of_layer(&self, is_local: bool) -> Arc<Rotary> {
        Arc::clone(if is_local { &self.local } else { &self.global })
    }
}

/// The cosines and sines of the angles of each position.
#[derive(Debug, Default)]
pub(crate) struct Rotary {
    cosines: Vec<f32>,
    sines: Vec<f32>,
    /// The number of angles of a position.
    angles: usize,
}

impl Rotary {
    /// The angle `i` of position `p` is p · θ^(−2i / dims).
    fn new(theta: f64, dims: usize, positions: usize) -> Self {
        let angles = dims / 2;
        // The reference has frequencies and angles of single precision. Rounding in the same places keeps its angles.
        let frequencies: Vec<f32> =
            (0..angles).map(|i| theta.powf(-2.0 * i as f64 / dims as f64) as f32).collect();
        let of_all = |f: fn(f64) -> f64| {
            let positions = (0..positions).map(|position| position as f32);
            let of = |position: f32| frequencies.iter().map(move |w| f(f64::from(position * w)) as f32);
            positions.flat_map(of).collect()
        };
        Self { cosines: of_all(f64::cos), sines: of_all(f64::sin), angles }
    }

    /// Rotates the queries and keys of one sequence, whose rows have queries, keys and values side by side. Dimension `i` of a
    /// head turns with dimension `i` of its second half.
    ///
    /// Fails if the sequence is longer than the positions.
    pub(crate) fn rotate(&self, arch: Arch, heads: Heads, qkv: &mut [f32]) -> Result<()> {
        let (width, angles) = (heads.hidden * 3, self.angles.max(1));
        let tokens = qkv.len() / width;
        if tokens * self.angles > self.cosines.len() {
            return Err(error::internal(format_args!("no rotary positions for {tokens} tokens")));
        }
        vectorized(
            arch,
            #[inline(always)]
            || {
                let of_positions = self.cosines.chunks_exact(angles).zip(self.sines.chunks_exact(angles));
                for (row, (cosines, sines)) in qkv.chunks_exact_mut(width).zip(of_positions) {
                    let turned = row.get_mut(..heads.hidden * 2).unwrap_or_default();
                    for head in turned.chunks_exact_mut(heads.dims) {
                        let (first, second) = head.split_at_mut(angles);
                        for (((a, b), &cosine), &sine) in first.iter_mut().zip(second).zip(cosines).zip(sines)
                        {
                            (*a, *b) = (*a * cosine - *b * sine, *b * cosine + *a * sine);
                        }
                    }
                }
            },
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_is_that_of_the_definition_and_leaves_values() {
        let (dims, hidden, theta) = (6, 12, 500.0);
        let rotary = Rotary::new(theta, dims, 9);
        let row: Vec<f32> = (0..3 * hidden).map(|i| (i as f32 * 0.7).sin()).collect();
        for arch in [Arch::new(), Arch::Scalar] {
            let mut rows = row.repeat(9);
            rotary.rotate(arch, Heads { hidden, dims, reach: None }, &mut rows).unwrap();
            for (position, turned) in rows.chunks(3 * hidden).enumerate() {
                assert_eq!(turned[2 * hidden..], row[2 * hidden..]);
                for at in (0..2 * hidden).filter(|at| at % dims < dims / 2) {
                    let angle = position as f64 * theta.powf(-2.0 * (at % dims) as f64 / dims as f64);
                    let (a, b) = (f64::from(row[at]), f64::from(row[at + dims / 2]));
                    let expected = [a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()];
                    for (found, expected) in [turned[at], turned[at + dims / 2]].iter().zip(expected) {
                        assert!((f64::from(*found) - expected).abs() < 1e-5, "{position} {at}");
                    }
                }
            }
        }
    }

    #[test]
    fn longer_sequence_is_an_error() {
        let rotary = Rotary::new(500.0, 4, 3);
        let rotate = |tokens: usize| {
            let heads = Heads { hidden: 4, dims: 4, reach: None };
            rotary.rotate(Arch::new(), heads, &mut vec![1.0; tokens * 12]).is_ok()
        };
        assert_eq!([rotate(3), rotate(4)], [true, false]);
    }
}

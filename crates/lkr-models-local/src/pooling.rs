//! Pools the rows of a text's tokens into one vector.

use lkr_models::Result;

use crate::error;
use crate::kernels;

/// The pooling mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pooling {
    /// The mean over all tokens. The mode `mean_sqrt_len` differs by a factor only, which normalisation removes.
    Mean,
    /// The row of the first token.
    Cls,
    /// The maximum of each dimension.
    Max,
}

impl Pooling {
    /// One vector of length 1 from the rows of a sequence's tokens.
    pub(crate) fn pool(self, rows: &[f32], hidden: usize) -> Result<Vec<f32>> {
        let mut tokens = rows.chunks_exact(hidden);
        let mut vector = tokens.next().ok_or_else(|| error::internal("a sequence without tokens"))?.to_vec();
        let combine: fn(f32, f32) -> f32 = match self {
            Self::Cls => |first, _| first,
            // The sum has the direction of the mean.
            Self::Mean => |sum, x| sum + x,
            Self::Max => f32::max,
        };
        for token in tokens {
            for (all, &x) in vector.iter_mut().zip(token) {
                *all = combine(*all, x);
            }
        }
        if kernels::to_unit(&mut vector) {
            Ok(vector)
        } else {
            Err(error::internal("the model answered a zero vector"))
        }
    }
}

//! Pools the rows of a text's tokens into one vector.

use std::collections::BTreeMap;
use std::path::Path;

use lkr_models::Result;
use serde_json::Value;

use crate::error;
use crate::folder::required;

/// The pooling mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pooling {
    /// The mean over all tokens.
    Mean,
    /// The row of the first token.
    Cls,
    /// The maximum of each dimension.
    Max,
    /// The sum divided by the square root of the number of tokens.
    MeanSqrtLen,
}

impl Pooling {
    /// A vector with the direction of the pooled rows of a sequence's tokens. The sum has the direction of the mean.
    pub(crate) fn direction(self, rows: &[f32], hidden: usize) -> Result<Vec<f32>> {
        let mut tokens = rows.chunks_exact(hidden);
        let mut vector = tokens.next().ok_or_else(|| error::internal("a sequence without tokens"))?.to_vec();
        let combine: fn(f32, f32) -> f32 = match self {
            Self::Cls => return Ok(vector),
            Self::Mean | Self::MeanSqrtLen => |sum, x| sum + x,
            Self::Max => f32::max,
        };
        for token in tokens {
            for (all, &x) in vector.iter_mut().zip(token) {
                *all = combine(*all, x);
            }
        }
        Ok(vector)
    }

    /// The pooled rows, with their length.
    pub(crate) fn pool(self, rows: &[f32], hidden: usize) -> Result<Vec<f32>> {
        let mut vector = self.direction(rows, hidden)?;
        let tokens = (rows.len() / hidden) as f32;
        let divisor = match self {
            Self::Mean => tokens,
            Self::MeanSqrtLen => tokens.sqrt(),
            Self::Cls | Self::Max => return Ok(vector),
        };
        vector.iter_mut().for_each(|x| *x /= divisor);
        Ok(vector)
    }

    /// The mode as a part of the id of a model whose vectors are scaled to length 1, which makes two modes the same.
    pub(crate) const fn of_direction(self) -> Self {
        match self {
            Self::MeanSqrtLen => Self::Mean,
            other => other,
        }
    }
}

/// The pooling mode, either a name (`pooling_mode`) or a flag for each mode.
pub(crate) fn read_pooling(path: &Path) -> Result<Pooling> {
    let config: BTreeMap<String, Value> = required(path)?;
    if config.get("include_prompt") == Some(&Value::Bool(false)) {
        return Err(error::file(path, "include_prompt false is not supported"));
    }
    let modes: Vec<&str> = match config.get("pooling_mode") {
        Some(Value::String(mode)) => vec![mode],
        Some(other) => {
            return Err(error::file(path, format_args!("pooling_mode {other} is not supported")));
        }
        None => config
            .iter()
            .filter(|&(_, value)| value == &Value::Bool(true))
            .filter_map(|(key, _)| key.strip_prefix("pooling_mode_"))
            .collect(),
    };
    match modes.as_slice() {
        ["mean" | "mean_tokens"] => Ok(Pooling::Mean),
        ["mean_sqrt_len_tokens"] => Ok(Pooling::MeanSqrtLen),
        ["cls" | "cls_token"] => Ok(Pooling::Cls),
        ["max" | "max_tokens"] => Ok(Pooling::Max),
        other => Err(error::file(path, format_args!("pooling mode {other:?} is not supported"))),
    }
}

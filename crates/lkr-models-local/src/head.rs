//! From the row of a sequence's first token to its score.

use lkr_models::Result;

use crate::config::ModelConfig;
use crate::error;
use crate::layer::Linear;
use crate::weights::Tensors;

/// What becomes of the last number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Squash {
    /// 1 / (1 + e⁻ˣ): a probability.
    Sigmoid,
    /// It stays.
    Identity,
}

/// Where the weights of a head stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// BERT: the pooler within the model, `classifier` beside it.
    Pooler,
    /// RoBERTa and its family: `classifier.dense` and `classifier.out_proj` beside the model.
    Dense,
}

/// A head with one label: a linear layer, tanh, and one more linear layer.
#[derive(Debug)]
pub(crate) struct Head {
    dense: Linear,
    out: Linear,
    squash: Squash,
}

impl Head {
    pub(crate) fn load(
        config: &ModelConfig,
        kind: HeadKind,
        squash: Squash,
        tensors: &Tensors<'_>,
    ) -> Result<Self> {
        let hidden = config.hidden;
        let beside = tensors.beside();
        let (dense, out) = match kind {
            HeadKind::Pooler => (
                Linear::load(tensors, "pooler.dense", hidden, hidden)?,
                Linear::load(&beside, "classifier", hidden, 1)?,
            ),
            HeadKind::Dense => (
                Linear::load(&beside, "classifier.dense", hidden, hidden)?,
                Linear::load(&beside, "classifier.out_proj", hidden, 1)?,
            ),
        };
        Ok(Self { dense, out, squash })
    }

    /// The score of a sequence, of which `rows` are the tokens' rows.
    pub(crate) fn score(&self, rows: &[f32]) -> Result<f32> {
        let mut middle = self.dense.of_row(rows)?;
        middle.iter_mut().for_each(|x| *x = x.tanh());
        let out = self.out.of_row(&middle)?;
        let score = out.first().copied().ok_or_else(|| error::internal("a head without a label"))?;
        let score = match self.squash {
            Squash::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            Squash::Identity => score,
        };
        if score.is_finite() { Ok(score) } else { Err(error::internal("the model answered no number")) }
    }
}

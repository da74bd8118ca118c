//! Computes the score of a sequence from the row of its first token.

use lkr_models::Result;

use crate::config::ModelConfig;
use crate::error;
use crate::layer::Linear;
use crate::weights::Tensors;

/// The function of the raw score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputActivation {
    /// 1 / (1 + e⁻ˣ): a probability.
    Sigmoid,
    /// The identity.
    Identity,
}

/// The location of the weights of a head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// BERT: the pooler inside the model, `classifier` beside it.
    Pooler,
    /// RoBERTa and its family: `classifier.dense` and `classifier.out_proj` beside the model.
    Dense,
}

/// A head with one label: a linear layer, tanh, and one more linear layer.
#[derive(Debug)]
pub(crate) struct Head {
    dense: Linear,
    out: Linear,
    activation: OutputActivation,
}

impl Head {
    pub(crate) fn load(
        config: &ModelConfig,
        kind: HeadKind,
        activation: OutputActivation,
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
        Ok(Self { dense, out, activation })
    }

    /// The score of a sequence whose tokens' rows are `rows`.
    pub(crate) fn score(&self, rows: &[f32]) -> Result<f32> {
        let mut middle = self.dense.of_row(rows)?;
        middle.iter_mut().for_each(|x| *x = x.tanh());
        let out = self.out.of_row(&middle)?;
        let score = out.first().copied().ok_or_else(|| error::internal("a head without a label"))?;
        let score = match self.activation {
            OutputActivation::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            OutputActivation::Identity => score,
        };
        if score.is_finite() { Ok(score) } else { Err(error::internal("the model answered no number")) }
    }
}

//! Computes the score of a sequence from the rows of its tokens.

use lkr_models::Result;

use crate::config::{Activation, Family, ModelConfig};
use crate::error;
use crate::linear::{Linear, LinearShape, NormWeights};
use crate::pooling::Pooling;
use crate::steps::{Step, StepActivation, Steps};
use crate::weights::Tensors;

/// The function of the raw score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputActivation {
    /// 1 / (1 + e⁻ˣ): a probability.
    Sigmoid,
    /// The identity.
    Identity,
}

/// The form of a head whose weights are in the file of the transformer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadKind {
    /// BERT: the pooler inside the model, `classifier` beside it.
    Pooler,
    /// RoBERTa and its family: `classifier.dense` and `classifier.out_proj` beside the model.
    Dense,
    /// DistilBERT: `pre_classifier` and `classifier` beside the model.
    PreClassifier,
    /// ModernBERT: `head.dense`, `head.norm` and `classifier` beside the model.
    Prediction { pooling: Pooling, activation: Activation, biased: bool },
}

/// A pooling, and steps to one number.
#[derive(Debug)]
pub(crate) struct Head {
    pooling: Pooling,
    steps: Steps,
    activation: OutputActivation,
}

impl Head {
    /// A head of modules.
    pub(crate) const fn of_modules(pooling: Pooling, steps: Steps, activation: OutputActivation) -> Self {
        Self { pooling, steps, activation }
    }

    /// The head of a sequence classifier with one label.
    pub(crate) fn load(
        config: &ModelConfig,
        kind: HeadKind,
        activation: OutputActivation,
        tensors: &Tensors<'_>,
    ) -> Result<Self> {
        let beside = tensors.beside();
        let square = LinearShape { inputs: config.hidden, outputs: config.hidden, biased: true };
        let dense = |tensors: &Tensors<'_>, name, shape, activation| {
            Ok(Step::Dense { linear: Linear::load(tensors, name, shape)?, activation })
        };
        let last =
            |name| dense(&beside, name, LinearShape { outputs: 1, ..square }, StepActivation::Identity);
        let tanh = StepActivation::Tanh;
        let (pooling, steps) = match kind {
            HeadKind::Pooler => {
                (Pooling::Cls, vec![dense(tensors, "pooler.dense", square, tanh)?, last("classifier")?])
            }
            HeadKind::Dense => {
                let first = dense(&beside, "classifier.dense", square, tanh)?;
                (Pooling::Cls, vec![first, last("classifier.out_proj")?])
            }
            HeadKind::PreClassifier => {
                let relu = StepActivation::Of(Activation::Relu);
                (Pooling::Cls, vec![dense(&beside, "pre_classifier", square, relu)?, last("classifier")?])
            }
            HeadKind::Prediction { pooling, activation, biased } => {
                let norm_bias = matches!(&config.family, Family::ModernBert(modern) if modern.norm_bias);
                let (hidden, eps) = (config.hidden, config.layer_norm_eps);
                let shape = LinearShape { biased, ..square };
                let first = dense(&beside, "head.dense", shape, StepActivation::Of(activation))?;
                let norm = NormWeights::load(&beside, "head.norm", hidden, norm_bias, eps)?;
                (pooling, vec![first, Step::Norm(norm), last("classifier")?])
            }
        };
        Ok(Self { pooling, steps: Steps::of_head(steps), activation })
    }

    /// The score of a sequence whose tokens' rows are `rows`, with `hidden` numbers each.
    pub(crate) fn score(&self, rows: &[f32], hidden: usize) -> Result<f32> {
        let out = self.steps.apply(self.pooling.pool(rows, hidden)?)?;
        let score = out.first().copied().ok_or_else(|| error::internal("a head without a label"))?;
        let score = match self.activation {
            OutputActivation::Sigmoid => 1.0 / (1.0 + (-score).exp()),
            OutputActivation::Identity => score,
        };
        if score.is_finite() { Ok(score) } else { Err(error::internal("the model answered no number")) }
    }
}

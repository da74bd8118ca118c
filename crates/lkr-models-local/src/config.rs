//! config.json: the shape of the transformer.

mod bert;
mod distilbert;
mod modernbert;

use std::path::Path;

use lkr_models::Result;
use serde::Deserialize;

use crate::error;
use crate::folder::required;
pub(crate) use modernbert::ModernBert;

/// The non-linearity of the feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// x · Φ(x), with the error function (GELU).
    Gelu,
    /// The approximation of GELU by tanh.
    GeluTanh,
    Relu,
    /// x / (1 + e⁻ˣ) (SiLU).
    Silu,
}

/// How positions are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Positions {
    /// BERT: from 0.
    FromZero,
    /// RoBERTa: from the padding token's id + 1; padding tokens have the padding token's id as their position.
    After { padding: u32 },
}

impl Positions {
    /// The tokens with their positions.
    pub(crate) fn numbered(self, ids: &[u32]) -> impl Iterator<Item = (u32, usize)> {
        let mut next = match self {
            Self::FromZero => 0,
            Self::After { padding } => padding as usize + 1,
        };
        ids.iter().map(move |&id| match self {
            // A text may contain the padding token; the reference then continues counting without it.
            Self::After { padding } if id == padding => (id, padding as usize),
            _ => {
                next += 1;
                (id, next - 1)
            }
        })
    }
}

/// The architecture, which decides about the names of tensors and the order of operations.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Family {
    /// BERT, RoBERTa, XLM-RoBERTa and CamemBERT.
    Bert,
    /// BERT without token types, under other names.
    DistilBert,
    /// Rotary positions, local attention and gated feed-forward layers.
    ModernBert(ModernBert),
}

/// A transformer whose sizes are consistent.
#[derive(Debug, Clone)]
pub(crate) struct ModelConfig {
    pub(crate) family: Family,
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) intermediate: usize,
    pub(crate) vocabulary: usize,
    /// 0 if the model has none.
    pub(crate) token_types: usize,
    pub(crate) max_positions: usize,
    pub(crate) positions: Positions,
    pub(crate) activation: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl ModelConfig {
    /// Reads config.json.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            model_type: String,
        }
        let Kind { model_type } = required(path)?;
        let config = match model_type.as_str() {
            "bert" => required::<bert::RawConfig>(path)?.into_config(None),
            "roberta" | "xlm-roberta" | "camembert" => {
                required::<bert::RawConfig>(path)?.into_config(Some(1))
            }
            "distilbert" => required::<distilbert::RawConfig>(path)?.into_config(),
            "modernbert" => required::<modernbert::RawConfig>(path)?.into_config(),
            other => Err(error::config(format_args!("model_type {other} is not supported"))),
        };
        config.and_then(Self::checked).map_err(|why| error::file(path, why.reason()))
    }

    fn checked(self) -> Result<Self> {
        let Self { hidden, heads, layers, intermediate, vocabulary, token_types, .. } = self;
        let sizes = [hidden, heads, layers, intermediate, vocabulary];
        let no_types = token_types == 0 && self.family == Family::Bert;
        if sizes.contains(&0) || no_types || hidden % heads != 0 {
            return Err(error::config(format_args!(
                "sizes {:?} (hidden, heads, layers, intermediate, vocabulary, types) do not make a model: none may be 0, and \
                 heads must divide hidden",
                [hidden, heads, layers, intermediate, vocabulary, token_types]
            )));
        }
        Ok(self)
    }

    pub(crate) const fn head_dims(&self) -> usize {
        self.hidden / self.heads
    }

    /// The number of tokens that have a position.
    pub(crate) const fn usable_positions(&self) -> usize {
        match self.positions {
            Positions::FromZero => self.max_positions,
            Positions::After { padding } => self.max_positions.saturating_sub(padding as usize + 1),
        }
    }

    /// The settings as a part of the model's id. Its form must not change: another id means that all documents are embedded
    /// again.
    pub(crate) fn for_id(&self) -> String {
        let Self { family, hidden, layers, heads, intermediate, vocabulary, token_types, .. } = self;
        let Self { max_positions, positions, activation, layer_norm_eps, .. } = self;
        let shape = format!(
            "ModelConfig {{ hidden: {hidden}, layers: {layers}, heads: {heads}, intermediate: {intermediate}, \
             vocabulary: {vocabulary}, token_types: {token_types}, max_positions: {max_positions}, \
             positions: {positions:?}, activation: {activation:?}, layer_norm_eps: {layer_norm_eps:?} }}"
        );
        match family {
            // The first families are not named.
            Family::Bert => shape,
            other => format!("{shape} {other:?}"),
        }
    }
}

/// The activation `name`, which is the value of `key`.
pub(crate) fn activation(key: &str, name: &str) -> Result<Activation> {
    match name {
        "gelu" => Ok(Activation::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        "relu" => Ok(Activation::Relu),
        "silu" | "swish" => Ok(Activation::Silu),
        other => Err(error::config(format_args!("{key} {other} is not supported"))),
    }
}

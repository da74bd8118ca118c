//! config.json: the shape of the transformer.

use lkr_models::{Error, Result};
use serde::Deserialize;

use crate::error;

/// The non-linearity between the two halves of the feed-forward layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Activation {
    /// x · Φ(x), with the error function (GELU).
    Gelu,
    /// The approximation of GELU by tanh.
    GeluTanh,
    Relu,
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

/// A transformer whose sizes are consistent.
#[derive(Debug, Clone)]
pub(crate) struct ModelConfig {
    pub(crate) hidden: usize,
    pub(crate) layers: usize,
    pub(crate) heads: usize,
    pub(crate) intermediate: usize,
    pub(crate) vocabulary: usize,
    pub(crate) token_types: usize,
    pub(crate) max_positions: usize,
    pub(crate) positions: Positions,
    pub(crate) activation: Activation,
    pub(crate) layer_norm_eps: f32,
}

impl ModelConfig {
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
}

/// The contents of config.json.
#[derive(Deserialize)]
pub(crate) struct RawConfig {
    model_type: String,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    #[serde(default = "token_types")]
    type_vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "layer_norm_eps")]
    layer_norm_eps: f32,
    pad_token_id: Option<u32>,
    position_embedding_type: Option<String>,
    #[serde(default)]
    is_decoder: bool,
}

fn gelu() -> String {
    "gelu".to_owned()
}

const fn token_types() -> usize {
    2
}

const fn layer_norm_eps() -> f32 {
    1e-12
}

impl TryFrom<RawConfig> for ModelConfig {
    type Error = Error;

    fn try_from(raw: RawConfig) -> Result<Self> {
        let RawConfig { hidden_size: hidden, num_attention_heads: heads, .. } = raw;
        if let Some(kind) = raw.position_embedding_type.as_deref().filter(|&kind| kind != "absolute") {
            return Err(error::config(format_args!("position_embedding_type {kind} is not supported")));
        }
        if raw.is_decoder {
            return Err(error::config("is_decoder true is not supported"));
        }
        let RawConfig { num_hidden_layers: layers, intermediate_size: intermediate, .. } = raw;
        let sizes = [hidden, heads, layers, intermediate, raw.vocab_size, raw.type_vocab_size];
        if sizes.contains(&0) || hidden % heads != 0 {
            return Err(error::config(format_args!(
                "sizes {sizes:?} (hidden, heads, layers, intermediate, vocabulary, types) do not make a model"
            )));
        }
        Ok(Self {
            positions: positions(&raw)?,
            activation: activation(&raw.hidden_act)?,
            hidden,
            heads,
            layers,
            intermediate,
            vocabulary: raw.vocab_size,
            token_types: raw.type_vocab_size,
            max_positions: raw.max_position_embeddings,
            layer_norm_eps: raw.layer_norm_eps,
        })
    }
}

fn positions(raw: &RawConfig) -> Result<Positions> {
    match raw.model_type.as_str() {
        "bert" => Ok(Positions::FromZero),
        "roberta" | "xlm-roberta" | "camembert" => {
            Ok(Positions::After { padding: raw.pad_token_id.unwrap_or(1) })
        }
        other => Err(error::config(format_args!("model_type {other} is not supported"))),
    }
}

fn activation(name: &str) -> Result<Activation> {
    match name {
        "gelu" => Ok(Activation::Gelu),
        "gelu_new" | "gelu_pytorch_tanh" => Ok(Activation::GeluTanh),
        "relu" => Ok(Activation::Relu),
        other => Err(error::config(format_args!("hidden_act {other} is not supported"))),
    }
}

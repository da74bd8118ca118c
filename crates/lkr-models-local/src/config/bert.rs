use lkr_models::Result;
use serde::Deserialize;

use super::{Family, ModelConfig, Positions, activation};
use crate::error;

/// config.json of BERT and of RoBERTa with its descendants.
#[derive(Deserialize)]
pub(super) struct RawConfig {
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

impl RawConfig {
    /// `padding` is the padding token's id if config.json has none, for families that number positions after it.
    pub(super) fn into_config(self, padding: Option<u32>) -> Result<ModelConfig> {
        if let Some(kind) = self.position_embedding_type.as_deref().filter(|&kind| kind != "absolute") {
            return Err(error::config(format_args!("position_embedding_type {kind} is not supported")));
        }
        if self.is_decoder {
            return Err(error::config("is_decoder true is not supported"));
        }
        Ok(ModelConfig {
            family: Family::Bert,
            positions: match padding {
                None => Positions::FromZero,
                Some(padding) => Positions::After { padding: self.pad_token_id.unwrap_or(padding) },
            },
            activation: activation("hidden_act", &self.hidden_act)?,
            hidden: self.hidden_size,
            heads: self.num_attention_heads,
            layers: self.num_hidden_layers,
            intermediate: self.intermediate_size,
            vocabulary: self.vocab_size,
            token_types: self.type_vocab_size,
            max_positions: self.max_position_embeddings,
            layer_norm_eps: self.layer_norm_eps,
        })
    }
}

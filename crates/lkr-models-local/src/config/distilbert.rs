use lkr_models::Result;
use serde::Deserialize;

use super::{Family, ModelConfig, Positions, activation};

/// config.json of DistilBERT. Its norms have no setting.
#[derive(Deserialize)]
pub(super) struct RawConfig {
    dim: usize,
    n_layers: usize,
    n_heads: usize,
    hidden_dim: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    activation: String,
}

impl RawConfig {
    pub(super) fn into_config(self) -> Result<ModelConfig> {
        Ok(ModelConfig {
            family: Family::DistilBert,
            hidden: self.dim,
            layers: self.n_layers,
            heads: self.n_heads,
            intermediate: self.hidden_dim,
            vocabulary: self.vocab_size,
            token_types: 0,
            max_positions: self.max_position_embeddings,
            positions: Positions::FromZero,
            activation: activation("activation", &self.activation)?,
            layer_norm_eps: 1e-12,
        })
    }
}

use std::collections::BTreeMap;

use lkr_models::Result;
use serde::Deserialize;
use serde_json::Value;

use super::{Family, ModelConfig, Positions, activation};
use crate::error;

/// The most positions: the angles of all are computed when a model is opened.
const MAX_POSITIONS: usize = 1 << 17;
/// The most layers, so that a damaged number does not fill the memory.
const MAX_LAYERS: usize = 1 << 10;

/// What only ModernBERT has.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModernBert {
    /// θ of layers in which every token sees every other.
    pub(crate) global_theta: f64,
    /// θ of layers in which a token sees its neighbours.
    pub(crate) local_theta: f64,
    /// The most tokens between a token and a neighbour that it sees in a local layer.
    pub(crate) reach: usize,
    /// Whether each layer is local.
    pub(crate) local: Vec<bool>,
    pub(crate) attention_bias: bool,
    pub(crate) feed_forward_bias: bool,
    pub(crate) norm_bias: bool,
}

/// config.json of ModernBERT: of version 5 of transformers, with a type for each layer, or older, with a period.
#[derive(Deserialize)]
pub(super) struct RawConfig {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    hidden_activation: String,
    norm_eps: f32,
    #[serde(default)]
    norm_bias: bool,
    #[serde(default)]
    attention_bias: bool,
    #[serde(default)]
    mlp_bias: bool,
    local_attention: usize,
    layer_types: Option<Vec<String>>,
    rope_parameters: Option<BTreeMap<String, Rope>>,
    global_attn_every_n_layers: Option<usize>,
    global_rope_theta: Option<f64>,
    local_rope_theta: Option<f64>,
    rope_scaling: Option<Value>,
}

#[derive(Deserialize)]
struct Rope {
    rope_theta: f64,
    #[serde(default = "default_type")]
    rope_type: String,
}

fn default_type() -> String {
    "default".to_owned()
}

impl RawConfig {
    pub(super) fn into_config(self) -> Result<ModelConfig> {
        let head_dims = self.hidden_size.checked_div(self.num_attention_heads).unwrap_or_default();
        if !head_dims.is_multiple_of(2) {
            return Err(error::config(format_args!(
                "heads of {head_dims} dimensions have no halves to rotate"
            )));
        }
        if self.max_position_embeddings > MAX_POSITIONS {
            let positions = self.max_position_embeddings;
            return Err(error::config(format_args!(
                "max_position_embeddings {positions} is more than {MAX_POSITIONS}, the most that are supported"
            )));
        }
        if let Some(scaling) = self.rope_scaling.as_ref().filter(|scaling| !scaling.is_null()) {
            return Err(error::config(format_args!("rope_scaling {scaling} is not supported")));
        }
        let family = ModernBert {
            global_theta: self.theta("full_attention", "global_rope_theta", self.global_rope_theta)?,
            local_theta: self.theta("sliding_attention", "local_rope_theta", self.local_rope_theta)?,
            reach: self.local_attention / 2,
            local: self.local_layers()?,
            attention_bias: self.attention_bias,
            feed_forward_bias: self.mlp_bias,
            norm_bias: self.norm_bias,
        };
        Ok(ModelConfig {
            family: Family::ModernBert(family),
            hidden: self.hidden_size,
            layers: self.num_hidden_layers,
            heads: self.num_attention_heads,
            intermediate: self.intermediate_size,
            vocabulary: self.vocab_size,
            token_types: 0,
            max_positions: self.max_position_embeddings,
            positions: Positions::FromZero,
            activation: activation("hidden_activation", &self.hidden_activation)?,
            layer_norm_eps: self.norm_eps,
        })
    }

    /// The base of the angles of layers of `kind`; `older` is the value of `key`, where older files have it.
    fn theta(&self, kind: &str, key: &str, older: Option<f64>) -> Result<f64> {
        let theta = match &self.rope_parameters {
            Some(by_kind) => {
                let rope = by_kind.get(kind).ok_or_else(|| {
                    error::config(format_args!("rope_parameters has no parameters of {kind}"))
                })?;
                if rope.rope_type != "default" {
                    return Err(error::config(format_args!("rope_type {} is not supported", rope.rope_type)));
                }
                rope.rope_theta
            }
            None => older.ok_or_else(|| {
                error::config(format_args!("config.json has neither rope_parameters nor {key}"))
            })?,
        };
        if theta.is_finite() && theta > 0.0 {
            return Ok(theta);
        }
        Err(error::config(format_args!("θ {theta} of {kind} is not a positive number")))
    }

    fn local_layers(&self) -> Result<Vec<bool>> {
        let layers = self.num_hidden_layers;
        if layers > MAX_LAYERS {
            return Err(error::config(format_args!("num_hidden_layers {layers} is more than {MAX_LAYERS}")));
        }
        match (&self.layer_types, self.global_attn_every_n_layers) {
            (Some(types), _) if types.len() == layers => types.iter().map(|kind| is_local(kind)).collect(),
            (Some(types), _) => Err(error::config(format_args!(
                "layer_types has {} entries, not one for each of {layers} layers",
                types.len()
            ))),
            (None, Some(period)) if period > 0 => Ok((0..layers).map(|layer| layer % period != 0).collect()),
            (None, Some(period)) => {
                Err(error::config(format_args!("global_attn_every_n_layers {period} is not a period")))
            }
            (None, None) => {
                Err(error::config("config.json has neither layer_types nor global_attn_every_n_layers"))
            }
        }
    }
}

fn is_local(kind: &str) -> Result<bool> {
    match kind {
        "full_attention" => Ok(false),
        "sliding_attention" => Ok(true),
        other => Err(error::config(format_args!("the layer type {other} is not supported"))),
    }
}

//! The layer of BERT, RoBERTa and DistilBERT.

use lkr_models::Result;
use pulp::Arch;

use super::FEED_BLOCK;
use crate::attention::{Heads, Lengths, attend};
use crate::config::{Family, ModelConfig};
use crate::kernels;
use crate::linear::{Linear, LinearShape, NormWeights, WeightFormat};
use crate::scratch::{Scratch, sized};
use crate::weights::Tensors;

/// Each part has its residual and its norm behind it.
#[derive(Debug)]
pub(crate) struct PostNormLayer {
    query_key_value: Linear,
    attention_out: Linear,
    attention_norm: NormWeights,
    up: Linear,
    down: Linear,
    norm: NormWeights,
}

/// The names of the tensors of a layer.
struct Names {
    layer: &'static str,
    query_key_value: [&'static str; 3],
    attention_out: &'static str,
    attention_norm: &'static str,
    up: &'static str,
    down: &'static str,
    norm: &'static str,
}

const BERT: Names = Names {
    layer: "encoder.layer",
    query_key_value: ["attention.self.query", "attention.self.key", "attention.self.value"],
    attention_out: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    layer: "transformer.layer",
    query_key_value: ["attention.q_lin", "attention.k_lin", "attention.v_lin"],
    attention_out: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

impl PostNormLayer {
    pub(super) fn load(
        config: &ModelConfig,
        tensors: &Tensors<'_>,
        index: usize,
        format: WeightFormat,
    ) -> Result<Self> {
        let ModelConfig { hidden, intermediate, layer_norm_eps: eps, .. } = *config;
        let names = if config.family == Family::DistilBert { &DISTILBERT } else { &BERT };
        let name = |part: &str| format!("{}.{index}.{part}", names.layer);
        let linear = |parts: &[&str], inputs, outputs| {
            let parts: Vec<String> = parts.iter().map(|part| name(part)).collect();
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            Linear::load_joined(tensors, &parts, LinearShape { inputs, outputs, biased: true }, format)
        };
        let norm = |part: &str| NormWeights::load(tensors, &name(part), hidden, true, eps);
        Ok(Self {
            query_key_value: linear(&names.query_key_value, hidden, hidden)?,
            attention_out: linear(&[names.attention_out], hidden, hidden)?,
            attention_norm: norm(names.attention_norm)?,
            up: linear(&[names.up], hidden, intermediate)?,
            down: linear(&[names.down], intermediate, hidden)?,
            norm: norm(names.norm)?,
        })
    }

    pub(super) fn apply(
        &self,
        arch: Arch,
        config: &ModelConfig,
        lengths: &Lengths,
        rows: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (hidden, tokens) = (config.hidden, lengths.tokens());
        let qkv = sized(&mut scratch.qkv, tokens * hidden * 3);
        self.query_key_value.apply(arch, tokens, rows, qkv, &mut scratch.inputs)?;
        kernels::add_bias(arch, qkv, self.query_key_value.bias());
        let context = sized(&mut scratch.context, tokens * hidden);
        let heads = Heads { hidden, dims: config.head_dims(), reach: None };
        attend(arch, heads, lengths, qkv, context, &mut scratch.attention)?;
        let out = sized(&mut scratch.out, tokens * hidden);
        self.attention_out.apply(arch, tokens, context, out, &mut scratch.inputs)?;
        kernels::add_and_norm(arch, rows, out, self.attention_out.bias(), self.attention_norm.as_norm());
        for block in rows.chunks_mut(FEED_BLOCK * hidden) {
            self.feed(arch, config, block, scratch)?;
        }
        Ok(())
    }

    /// The feed-forward part of a block of tokens.
    fn feed(&self, arch: Arch, config: &ModelConfig, rows: &mut [f32], scratch: &mut Scratch) -> Result<()> {
        let tokens = rows.len() / config.hidden;
        let wide = sized(&mut scratch.wide, tokens * config.intermediate);
        self.up.apply(arch, tokens, rows, wide, &mut scratch.inputs)?;
        kernels::activate(arch, config.activation, wide, self.up.bias());
        let out = sized(&mut scratch.out, tokens * config.hidden);
        self.down.apply(arch, tokens, wide, out, &mut scratch.inputs)?;
        kernels::add_and_norm(arch, rows, out, self.down.bias(), self.norm.as_norm());
        Ok(())
    }
}

//! The layer of ModernBERT.

use std::sync::Arc;

use lkr_models::Result;
use pulp::Arch;

use super::FEED_BLOCK;
use crate::attention::{Heads, Lengths, attend};
use crate::config::{ModelConfig, ModernBert};
use crate::kernels;
use crate::linear::{Linear, LinearShape, NormWeights, WeightFormat};
use crate::product::Rows;
use crate::rotary::Rotary;
use crate::scratch::{Scratch, sized};
use crate::weights::Tensors;

/// Each part has its norm before it and its residual behind it.
#[derive(Debug)]
pub(crate) struct GatedLayer {
    /// The first layer has none, because the embeddings are normalised already.
    attention_norm: Option<NormWeights>,
    query_key_value: Linear,
    attention_out: Linear,
    norm: NormWeights,
    /// The inputs of the activation and the gates, side by side.
    up: Linear,
    down: Linear,
    reach: Option<usize>,
    rotary: Arc<Rotary>,
}

impl GatedLayer {
    pub(super) fn load(
        config: &ModelConfig,
        modern: &ModernBert,
        rotary: Arc<Rotary>,
        tensors: &Tensors<'_>,
        index: usize,
        format: WeightFormat,
    ) -> Result<Self> {
        let ModelConfig { hidden, intermediate, layer_norm_eps: eps, .. } = *config;
        let name = |part: &str| format!("layers.{index}.{part}");
        let linear = |part: &str, inputs, outputs, biased| {
            Linear::load_joined(tensors, &[&name(part)], LinearShape { inputs, outputs, biased }, format)
        };
        let norm = |part: &str| NormWeights::load(tensors, &name(part), hidden, modern.norm_bias, eps);
        let (attention_bias, feed_bias) = (modern.attention_bias, modern.feed_forward_bias);
        let is_local = modern.local.get(index).copied().unwrap_or_default();
        Ok(Self {
            attention_norm: if index == 0 { None } else { Some(norm("attn_norm")?) },
            query_key_value: linear("attn.Wqkv", hidden, hidden.saturating_mul(3), attention_bias)?,
            attention_out: linear("attn.Wo", hidden, hidden, attention_bias)?,
            norm: norm("mlp_norm")?,
            up: linear("mlp.Wi", hidden, intermediate.saturating_mul(2), feed_bias)?,
            down: linear("mlp.Wo", intermediate, hidden, feed_bias)?,
            reach: is_local.then_some(modern.reach),
            rotary,
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
        let normed = sized(&mut scratch.normed, tokens * hidden);
        let inputs = normed_rows(arch, self.attention_norm.as_ref(), rows, normed);
        self.query_key_value.apply(arch, tokens, inputs, qkv, &mut scratch.inputs)?;
        kernels::add_bias(arch, qkv, self.query_key_value.bias());
        let heads = Heads { hidden, dims: config.head_dims(), reach: self.reach };
        for sequence in lengths.split_mut(qkv, hidden * 3) {
            self.rotary.rotate(arch, heads, sequence)?;
        }
        let context = sized(&mut scratch.context, tokens * hidden);
        attend(arch, heads, lengths, qkv, context, &mut scratch.attention)?;
        let out = sized(&mut scratch.out, tokens * hidden);
        self.attention_out.apply(arch, tokens, context, out, &mut scratch.inputs)?;
        kernels::add(arch, rows, out, self.attention_out.bias());
        for block in rows.chunks_mut(FEED_BLOCK * hidden) {
            self.feed(arch, config, block, scratch)?;
        }
        Ok(())
    }

    /// The feed-forward part of a block of tokens.
    fn feed(&self, arch: Arch, config: &ModelConfig, rows: &mut [f32], scratch: &mut Scratch) -> Result<()> {
        let ModelConfig { hidden, intermediate, activation, .. } = *config;
        let tokens = rows.len() / hidden;
        let normed = sized(&mut scratch.normed, tokens * hidden);
        let inputs = normed_rows(arch, Some(&self.norm), rows, normed);
        let wide = sized(&mut scratch.wide, tokens * intermediate * 2);
        self.up.apply(arch, tokens, inputs, wide, &mut scratch.inputs)?;
        kernels::activate_gated(arch, activation, wide, self.up.bias());
        let out = sized(&mut scratch.out, tokens * hidden);
        // The gated numbers are the first half of each row.
        let gated = Rows { numbers: wide, count: tokens, stride: intermediate * 2 };
        self.down.apply_to(arch, gated, out, &mut scratch.inputs)?;
        kernels::add(arch, rows, out, self.down.bias());
        Ok(())
    }
}

/// The rows, normalised into `place` if there is a norm.
fn normed_rows<'a>(
    arch: Arch,
    norm: Option<&NormWeights>,
    rows: &'a [f32],
    place: &'a mut [f32],
) -> &'a [f32] {
    let Some(norm) = norm else { return rows };
    place.iter_mut().zip(rows).for_each(|(place, &x)| *place = x);
    kernels::layer_norm(arch, place, norm.as_norm());
    place
}

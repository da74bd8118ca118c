//! One layer of the transformer: attention and the feed-forward part, each with its residual and norm.

use lkr_models::Result;
use pulp::Arch;

use crate::config::ModelConfig;
use crate::kernels::{self, Norm};
use crate::matrix::{Matrix, MatrixMut, product};
use crate::weights::{Floats, Tensors};

/// The number of query rows of a head that are processed at a time, which bounds the score matrix for models with long
/// inputs.
const QUERY_BLOCK: usize = 256;
/// The number of tokens that pass the feed-forward part at a time, so that its wide rows stay in the cache.
const FEED_BLOCK: usize = 1024;

/// The number of tokens of each sequence; the tokens of all are concatenated.
#[derive(Debug)]
pub(crate) struct Lengths(Vec<usize>);

impl Lengths {
    pub(crate) const fn new(lengths: Vec<usize>) -> Self {
        Self(lengths)
    }

    pub(crate) fn tokens(&self) -> usize {
        self.0.iter().sum()
    }

    /// The part of each sequence in `rows`, which have `width` numbers.
    pub(crate) fn split<'a>(&self, rows: &'a [f32], width: usize) -> impl Iterator<Item = &'a [f32]> {
        self.0.iter().scan(rows, move |rest, &length| {
            let (own, after) = rest.split_at_checked(length * width)?;
            *rest = after;
            Some(own)
        })
    }
}

/// Buffers that the layers reuse.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Queries, keys and values side by side: three widths for each token.
    qkv: Vec<f32>,
    /// The output of the heads.
    context: Vec<f32>,
    /// The output of a linear layer before its residual.
    out: Vec<f32>,
    scores: Vec<f32>,
    wide: Vec<f32>,
}

/// The start of a buffer, grown to `len` numbers with unspecified values.
fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    buffer.get_mut(..len).unwrap_or_default()
}

/// The weights of a layer normalisation.
#[derive(Debug)]
pub(crate) struct NormWeights {
    weight: Floats,
    bias: Floats,
}

impl NormWeights {
    pub(crate) fn load(config: &ModelConfig, tensors: &Tensors<'_>, name: &str) -> Result<Self> {
        let part = |part: &str| tensors.floats(&format!("{name}.{part}"), &[config.hidden]);
        Ok(Self { weight: part("weight")?, bias: part("bias")? })
    }

    pub(crate) fn as_norm(&self, eps: f32) -> Norm<'_> {
        Norm { weight: self.weight.as_slice(), bias: self.bias.as_slice(), eps }
    }
}

/// A linear layer with `outputs × inputs` weights, in PyTorch's layout.
#[derive(Debug)]
pub(crate) struct Linear {
    weight: Floats,
    bias: Floats,
    inputs: usize,
    outputs: usize,
}

impl Linear {
    pub(crate) fn load(tensors: &Tensors<'_>, name: &str, inputs: usize, outputs: usize) -> Result<Self> {
        let weight = tensors.floats(&format!("{name}.weight"), &[outputs, inputs])?;
        let bias = tensors.floats(&format!("{name}.bias"), &[outputs])?;
        Ok(Self { weight, bias, inputs, outputs })
    }

    /// The output for the first row of `rows`, including the bias.
    pub(crate) fn of_row(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut out = vec![0.0; self.outputs];
        self.apply(1, rows, &mut out, self.outputs)?;
        out.iter_mut().zip(self.bias.as_slice()).for_each(|(x, bias)| *x += bias);
        Ok(out)
    }

    /// Writes `rows · weightᵀ` to `out`, whose rows begin `stride` numbers apart. The caller adds the bias, because it
    /// visits the numbers anyway.
    fn apply(&self, tokens: usize, rows: &[f32], out: &mut [f32], stride: usize) -> Result<()> {
        let weight = Matrix::new(self.weight.as_slice(), self.outputs, self.inputs, self.inputs)?;
        product(
            &mut MatrixMut::new(out, tokens, self.outputs, stride)?,
            Matrix::new(rows, tokens, self.inputs, self.inputs)?,
            weight.transposed(),
        )
    }
}

/// The weights of one layer.
#[derive(Debug)]
pub(crate) struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attention_out: Linear,
    attention_norm: NormWeights,
    up: Linear,
    down: Linear,
    norm: NormWeights,
    /// The biases of query, key and value side by side.
    qkv_bias: Vec<f32>,
}

impl Layer {
    pub(crate) fn load(config: &ModelConfig, tensors: &Tensors<'_>, index: usize) -> Result<Self> {
        let ModelConfig { hidden, intermediate, .. } = *config;
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, inputs, outputs| Linear::load(tensors, &name(part), inputs, outputs);
        let norm = |part: &str| NormWeights::load(config, tensors, &name(part));
        let query = linear("attention.self.query", hidden, hidden)?;
        let key = linear("attention.self.key", hidden, hidden)?;
        let value = linear("attention.self.value", hidden, hidden)?;
        let qkv_bias = [&query, &key, &value].map(|part| part.bias.as_slice()).concat();
        Ok(Self {
            query,
            key,
            value,
            attention_out: linear("attention.output.dense", hidden, hidden)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            up: linear("intermediate.dense", hidden, intermediate)?,
            down: linear("output.dense", intermediate, hidden)?,
            norm: norm("output.LayerNorm")?,
            qkv_bias,
        })
    }

    /// Passes the tokens in `rows` through the layer, in place.
    pub(crate) fn apply(
        &self,
        arch: Arch,
        config: &ModelConfig,
        lengths: &Lengths,
        rows: &mut [f32],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (hidden, tokens) = (config.hidden, lengths.tokens());
        self.project(arch, rows, sized(&mut scratch.qkv, tokens * hidden * 3), tokens)?;
        let context = sized(&mut scratch.context, tokens * hidden);
        let mut rest = &mut *context;
        for qkv in lengths.split(sized(&mut scratch.qkv, tokens * hidden * 3), hidden * 3) {
            let Some((own, after)) = rest.split_at_mut_checked(qkv.len() / 3) else {
                break;
            };
            attend(arch, config, qkv, own, &mut scratch.scores)?;
            rest = after;
        }
        let out = sized(&mut scratch.out, tokens * hidden);
        self.attention_out.apply(tokens, context, out, hidden)?;
        let norm = self.attention_norm.as_norm(config.layer_norm_eps);
        kernels::add_and_norm(arch, rows, out, self.attention_out.bias.as_slice(), norm);
        for block in rows.chunks_mut(FEED_BLOCK * hidden) {
            self.feed(arch, config, block, scratch)?;
        }
        Ok(())
    }

    /// Queries, keys and values of all tokens.
    fn project(&self, arch: Arch, rows: &[f32], qkv: &mut [f32], tokens: usize) -> Result<()> {
        let stride = self.qkv_bias.len();
        for (part, linear) in [&self.query, &self.key, &self.value].into_iter().enumerate() {
            let columns = qkv.get_mut(part * linear.outputs..).unwrap_or_default();
            linear.apply(tokens, rows, columns, stride)?;
        }
        kernels::add_bias(arch, qkv, &self.qkv_bias);
        Ok(())
    }

    /// The feed-forward part of a block of tokens.
    fn feed(&self, arch: Arch, config: &ModelConfig, rows: &mut [f32], scratch: &mut Scratch) -> Result<()> {
        let tokens = rows.len() / config.hidden;
        let wide = sized(&mut scratch.wide, tokens * config.intermediate);
        self.up.apply(tokens, rows, wide, config.intermediate)?;
        kernels::activate(arch, config.activation, wide, self.up.bias.as_slice());
        let out = sized(&mut scratch.out, tokens * config.hidden);
        self.down.apply(tokens, wide, out, config.hidden)?;
        let norm = self.norm.as_norm(config.layer_norm_eps);
        kernels::add_and_norm(arch, rows, out, self.down.bias.as_slice(), norm);
        Ok(())
    }
}

/// Attention within one sequence: softmax(Q · Kᵀ / √d) · V for each head, written to `context`.
fn attend(
    arch: Arch,
    config: &ModelConfig,
    qkv: &[f32],
    context: &mut [f32],
    scores: &mut Vec<f32>,
) -> Result<()> {
    let (hidden, dims) = (config.hidden, config.head_dims());
    let (stride, tokens) = (hidden * 3, context.len() / hidden);
    let scale = 1.0 / (dims as f32).sqrt();
    for head in (0..hidden).step_by(dims) {
        let columns = |first: usize| qkv.get(first + head..).unwrap_or_default();
        let keys = Matrix::new(columns(hidden), tokens, dims, stride)?;
        let values = Matrix::new(columns(hidden * 2), tokens, dims, stride)?;
        for first in (0..tokens).step_by(QUERY_BLOCK) {
            let count = QUERY_BLOCK.min(tokens - first);
            let queries = Matrix::new(columns(first * stride), count, dims, stride)?;
            let scores = sized(scores, count * tokens);
            product(&mut MatrixMut::new(scores, count, tokens, tokens)?, queries, keys.transposed())?;
            kernels::softmax(arch, scores, tokens, scale);
            let out = context.get_mut(first * hidden + head..).unwrap_or_default();
            product(
                &mut MatrixMut::new(out, count, dims, hidden)?,
                Matrix::new(scores, count, tokens, tokens)?,
                values,
            )?;
        }
    }
    Ok(())
}

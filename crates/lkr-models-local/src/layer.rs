//! One layer of the transformer: attention and the feed-forward part, each with its residual and norm.

use lkr_models::{Precision, Result};
use pulp::Arch;

use crate::config::ModelConfig;
use crate::int8::{self, ByteRows, ByteWeights, InstructionSet};
use crate::kernels::{self, Norm};
use crate::panels::Panels;
use crate::product::{Rows, RowsMut, product};
use crate::weights::{Floats, Tensors};

/// The number of query rows of a head that are processed at a time, which bounds the score matrix for models with long
/// inputs.
const QUERY_BLOCK: usize = 256;
/// The number of tokens that pass the feed-forward part at a time, so that its wide rows stay in the cache.
const FEED_BLOCK: usize = 192;

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
    /// The keys and the values of a head.
    keys: Panels,
    values: Panels,
    /// The inputs of a linear layer as bytes.
    bytes: ByteRows,
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

/// A linear layer, or several with the same inputs, whose outputs are side by side.
#[derive(Debug)]
pub(crate) struct Linear {
    weights: Weights,
    bias: Vec<f32>,
    inputs: usize,
}

#[derive(Debug)]
enum Weights {
    Floats(Panels),
    Bytes(ByteWeights),
}

impl Linear {
    /// The layer `name` with `outputs × inputs` weights, in PyTorch's layout.
    pub(crate) fn load(tensors: &Tensors<'_>, name: &str, inputs: usize, outputs: usize) -> Result<Self> {
        Self::load_joined(tensors, &[name], inputs, outputs, Precision::Float32)
    }

    /// Several layers with `outputs` outputs each, side by side.
    fn load_joined(
        tensors: &Tensors<'_>,
        names: &[&str],
        inputs: usize,
        outputs: usize,
        precision: Precision,
    ) -> Result<Self> {
        let part = |part: &str, shape: &[usize]| -> Result<Vec<Floats>> {
            names.iter().map(|name| tensors.floats(&format!("{name}.{part}"), shape)).collect()
        };
        let weights = part("weight", &[outputs, inputs])?;
        let columns: Vec<&[f32]> =
            weights.iter().flat_map(|weights| weights.as_slice().chunks_exact(inputs.max(1))).collect();
        let columns = columns.into_iter();
        // A sum of more terms may not fit in 32 bits.
        let weights = match precision {
            Precision::Int8 if inputs <= int8::MAX_DEPTH => {
                Weights::Bytes(ByteWeights::of_columns(InstructionSet::best(), inputs, columns))
            }
            _ => Weights::Floats(Panels::of_columns(Arch::new(), inputs, columns)),
        };
        let bias = part("bias", &[outputs])?;
        Ok(Self { weights, bias: bias.iter().flat_map(|bias| bias.as_slice()).copied().collect(), inputs })
    }

    /// The output for the first row of `rows`, including the bias.
    pub(crate) fn of_row(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut out = vec![0.0; self.bias.len()];
        self.apply(Arch::new(), 1, rows, &mut out, &mut ByteRows::default())?;
        out.iter_mut().zip(&self.bias).for_each(|(x, bias)| *x += bias);
        Ok(out)
    }

    /// Writes the outputs for `tokens` rows to `out`. The caller adds the bias, because it visits the numbers anyway.
    fn apply(
        &self,
        arch: Arch,
        tokens: usize,
        rows: &[f32],
        out: &mut [f32],
        bytes: &mut ByteRows,
    ) -> Result<()> {
        let rows = Rows { numbers: rows, count: tokens, stride: self.inputs };
        let out = &mut RowsMut { numbers: out, stride: self.bias.len() };
        match &self.weights {
            Weights::Floats(panels) => product(arch, rows, panels, out),
            Weights::Bytes(weights) => weights.product(rows, out, bytes),
        }
    }
}

/// The weights of one layer.
#[derive(Debug)]
pub(crate) struct Layer {
    query_key_value: Linear,
    attention_out: Linear,
    attention_norm: NormWeights,
    up: Linear,
    down: Linear,
    norm: NormWeights,
}

impl Layer {
    pub(crate) fn load(
        config: &ModelConfig,
        tensors: &Tensors<'_>,
        index: usize,
        precision: Precision,
    ) -> Result<Self> {
        let ModelConfig { hidden, intermediate, .. } = *config;
        let name = |part: &str| format!("encoder.layer.{index}.{part}");
        let linear = |part: &str, inputs, outputs| {
            Linear::load_joined(tensors, &[&name(part)], inputs, outputs, precision)
        };
        let norm = |part: &str| NormWeights::load(config, tensors, &name(part));
        let attention = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
        Ok(Self {
            query_key_value: Linear::load_joined(
                tensors,
                &attention.each_ref().map(String::as_str),
                hidden,
                hidden,
                precision,
            )?,
            attention_out: linear("attention.output.dense", hidden, hidden)?,
            attention_norm: norm("attention.output.LayerNorm")?,
            up: linear("intermediate.dense", hidden, intermediate)?,
            down: linear("output.dense", intermediate, hidden)?,
            norm: norm("output.LayerNorm")?,
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
        let qkv = sized(&mut scratch.qkv, tokens * hidden * 3);
        self.query_key_value.apply(arch, tokens, rows, qkv, &mut scratch.bytes)?;
        kernels::add_bias(arch, qkv, &self.query_key_value.bias);
        let context = sized(&mut scratch.context, tokens * hidden);
        let mut rest = &mut *context;
        for qkv in lengths.split(qkv, hidden * 3) {
            let Some((own, after)) = rest.split_at_mut_checked(qkv.len() / 3) else {
                break;
            };
            let buffers = AttentionBuffers {
                keys: &mut scratch.keys,
                values: &mut scratch.values,
                scores: &mut scratch.scores,
            };
            attend(arch, config, qkv, own, buffers)?;
            rest = after;
        }
        let out = sized(&mut scratch.out, tokens * hidden);
        self.attention_out.apply(arch, tokens, context, out, &mut scratch.bytes)?;
        let norm = self.attention_norm.as_norm(config.layer_norm_eps);
        kernels::add_and_norm(arch, rows, out, &self.attention_out.bias, norm);
        for block in rows.chunks_mut(FEED_BLOCK * hidden) {
            self.feed(arch, config, block, scratch)?;
        }
        Ok(())
    }

    /// The feed-forward part of a block of tokens.
    fn feed(&self, arch: Arch, config: &ModelConfig, rows: &mut [f32], scratch: &mut Scratch) -> Result<()> {
        let tokens = rows.len() / config.hidden;
        let wide = sized(&mut scratch.wide, tokens * config.intermediate);
        self.up.apply(arch, tokens, rows, wide, &mut scratch.bytes)?;
        kernels::activate(arch, config.activation, wide, &self.up.bias);
        let out = sized(&mut scratch.out, tokens * config.hidden);
        self.down.apply(arch, tokens, wide, out, &mut scratch.bytes)?;
        let norm = self.norm.as_norm(config.layer_norm_eps);
        kernels::add_and_norm(arch, rows, out, &self.down.bias, norm);
        Ok(())
    }
}

/// What attention needs beside its operands.
struct AttentionBuffers<'a> {
    keys: &'a mut Panels,
    values: &'a mut Panels,
    scores: &'a mut Vec<f32>,
}

/// Attention within one sequence: softmax(Q · Kᵀ / √d) · V for each head, written to `context`.
fn attend(
    arch: Arch,
    config: &ModelConfig,
    qkv: &[f32],
    context: &mut [f32],
    buffers: AttentionBuffers<'_>,
) -> Result<()> {
    let AttentionBuffers { keys, values, scores } = buffers;
    let (hidden, dims) = (config.hidden, config.head_dims());
    let (stride, tokens) = (hidden * 3, context.len() / hidden);
    let scale = 1.0 / (dims as f32).sqrt();
    for head in (0..hidden).step_by(dims) {
        keys.set_columns(arch, dims, parts(qkv, stride, hidden + head, dims));
        values.set_rows(arch, dims, parts(qkv, stride, 2 * hidden + head, dims));
        for first in (0..tokens).step_by(QUERY_BLOCK) {
            let count = QUERY_BLOCK.min(tokens - first);
            let numbers = qkv.get(first * stride + head..).unwrap_or_default();
            let scores = sized(scores, count * tokens);
            let out = &mut RowsMut { numbers: scores, stride: tokens };
            product(arch, Rows { numbers, count, stride }, keys, out)?;
            kernels::softmax(arch, scores, tokens, scale);
            let out = context.get_mut(first * hidden + head..).unwrap_or_default();
            let out = &mut RowsMut { numbers: out, stride: hidden };
            product(arch, Rows { numbers: scores, count, stride: tokens }, values, out)?;
        }
    }
    Ok(())
}

/// The `len` numbers from index `start` on of each row.
fn parts(rows: &[f32], stride: usize, start: usize, len: usize) -> impl ExactSizeIterator<Item = &[f32]> {
    rows.chunks_exact(stride).map(move |row| row.get(start..start + len).unwrap_or_default())
}

//! Linear layers and layer normalisations with their weights.

use lkr_models::{Precision, Result};
use pulp::Arch;

use crate::bf16::{self, RoundedRows, RoundedWeights};
use crate::int8::{self, ByteRows, ByteWeights};
use crate::kernels::Norm;
use crate::panels::Panels;
use crate::product::{FloatRows, Rows, RowsMut, product};
use crate::weights::{Floats, Tensors};

/// The weights of a layer normalisation.
#[derive(Debug)]
pub(crate) struct NormWeights {
    weight: Floats,
    bias: Floats,
    eps: f32,
}

impl NormWeights {
    /// The norm `name` of rows with `width` numbers. Without biases they are zeros.
    pub(crate) fn load(
        tensors: &Tensors<'_>,
        name: &str,
        width: usize,
        biased: bool,
        eps: f32,
    ) -> Result<Self> {
        let part = |part: &str| tensors.floats(&format!("{name}.{part}"), &[width]);
        let weight = part("weight")?;
        let bias = if biased { part("bias")? } else { Floats::Owned(vec![0.0; width]) };
        Ok(Self { weight, bias, eps })
    }

    pub(crate) fn as_norm(&self) -> Norm<'_> {
        Norm { weight: self.weight.as_slice(), bias: self.bias.as_slice(), eps: self.eps }
    }
}

/// The form of a linear layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinearShape {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    /// Without biases they are zeros.
    pub(crate) biased: bool,
}

/// The numbers that weights are stored as.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WeightFormat {
    Floats,
    /// Rounded to bfloat16, and arranged for what multiplies them.
    Rounded(bf16::InstructionSet),
    /// Arranged for the instruction set that multiplies them.
    Bytes(int8::InstructionSet),
}

impl From<Precision> for WeightFormat {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Float32 => Self::Floats,
            Precision::Bf16 => Self::Rounded(bf16::InstructionSet::best()),
            Precision::Int8 => Self::Bytes(int8::InstructionSet::best()),
        }
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
    Rounded(RoundedWeights),
    Bytes(ByteWeights),
}

/// Buffers for the inputs of a linear layer in the format of its weights.
#[derive(Debug, Default)]
pub(crate) struct InputBuffers {
    floats: FloatRows,
    rounded: RoundedRows,
    bytes: ByteRows,
}

impl Linear {
    /// The layer `name` with `outputs × inputs` weights, in PyTorch's layout.
    pub(crate) fn load(tensors: &Tensors<'_>, name: &str, shape: LinearShape) -> Result<Self> {
        Self::load_joined(tensors, &[name], shape, WeightFormat::Floats)
    }

    /// Several layers with `outputs` outputs each, side by side.
    pub(crate) fn load_joined(
        tensors: &Tensors<'_>,
        names: &[&str],
        LinearShape { inputs, outputs, biased }: LinearShape,
        format: WeightFormat,
    ) -> Result<Self> {
        let part = |part: &str, shape: &[usize]| -> Result<Vec<Floats>> {
            names.iter().map(|name| tensors.floats(&format!("{name}.{part}"), shape)).collect()
        };
        let weights = part("weight", &[outputs, inputs])?;
        let columns: Vec<&[f32]> =
            weights.iter().flat_map(|weights| weights.as_slice().chunks_exact(inputs.max(1))).collect();
        let columns = columns.into_iter();
        // A sum of more terms may not fit in 32 bits.
        let weights = match format {
            WeightFormat::Bytes(set) if inputs <= int8::MAX_DEPTH => {
                Weights::Bytes(ByteWeights::of_columns(set, inputs, columns))
            }
            WeightFormat::Rounded(set) => Weights::Rounded(RoundedWeights::of_columns(set, inputs, columns)),
            WeightFormat::Floats | WeightFormat::Bytes(_) => {
                Weights::Floats(Panels::of_columns(Arch::new(), inputs, columns))
            }
        };
        let bias = if biased {
            part("bias", &[outputs])?.iter().flat_map(|bias| bias.as_slice()).copied().collect()
        } else {
            vec![0.0; outputs * names.len()]
        };
        Ok(Self { weights, bias, inputs })
    }

    pub(crate) fn bias(&self) -> &[f32] {
        &self.bias
    }

    /// The output for the first row of `rows`, including the bias.
    pub(crate) fn of_row(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut out = vec![0.0; self.bias.len()];
        self.apply(Arch::new(), 1, rows, &mut out, &mut InputBuffers::default())?;
        out.iter_mut().zip(&self.bias).for_each(|(x, bias)| *x += bias);
        Ok(out)
    }

    /// Writes the outputs for `tokens` rows to `out`. The caller adds the bias, because it visits the numbers anyway.
    pub(crate) fn apply(
        &self,
        arch: Arch,
        tokens: usize,
        rows: &[f32],
        out: &mut [f32],
        buffers: &mut InputBuffers,
    ) -> Result<()> {
        self.apply_to(arch, Rows { numbers: rows, count: tokens, stride: self.inputs }, out, buffers)
    }

    /// As [`Self::apply`], for rows at any distance.
    pub(crate) fn apply_to(
        &self,
        arch: Arch,
        rows: Rows<'_>,
        out: &mut [f32],
        buffers: &mut InputBuffers,
    ) -> Result<()> {
        let out = &mut RowsMut { numbers: out, stride: self.bias.len() };
        match &self.weights {
            Weights::Floats(panels) => product(arch, rows, panels, out, &mut buffers.floats),
            Weights::Rounded(weights) => weights.product(rows, out, &mut buffers.rounded),
            Weights::Bytes(weights) => weights.product(rows, out, &mut buffers.bytes),
        }
    }
}

//! The transformer: token ids to a row of numbers for each token.

use lkr_models::{Precision, Result};
use pulp::Arch;

use crate::config::ModelConfig;
use crate::error;
use crate::kernels;
use crate::layer::{Layer, Lengths, NormWeights, Scratch};
use crate::tokens::Sequence;
use crate::weights::{Table, Tensors};

/// A loaded encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    arch: Arch,
    config: ModelConfig,
    tokens: Table,
    positions: Table,
    /// The embedding of token type 0, the type of every token of a single text.
    first_type: Vec<f32>,
    /// The embedding of token type 1, the type of the second text of a pair.
    second_type: Vec<f32>,
    norm: NormWeights,
    layers: Vec<Layer>,
}

impl Encoder {
    pub(crate) fn load(config: &ModelConfig, tensors: &Tensors<'_>, precision: Precision) -> Result<Self> {
        let hidden = config.hidden;
        let table = |name: &str, rows| tensors.table(&format!("embeddings.{name}.weight"), rows, hidden);
        let types = table("token_type_embeddings", config.token_types)?;
        let of_type = |row: usize| {
            let mut numbers = vec![0.0; hidden];
            types.row(row.min(config.token_types.saturating_sub(1)), &mut numbers);
            numbers
        };
        Ok(Self {
            arch: Arch::new(),
            tokens: table("word_embeddings", config.vocabulary)?,
            positions: table("position_embeddings", config.max_positions)?,
            first_type: of_type(0),
            second_type: of_type(1),
            norm: NormWeights::load(config, tensors, "embeddings.LayerNorm")?,
            layers: (0..config.layers)
                .map(|i| Layer::load(config, tensors, i, precision))
                .collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// The final states of the tokens of `sequences`.
    ///
    /// The tokens of all sequences are concatenated without padding: linear layers process one matrix of all tokens,
    /// attention one sequence at a time.
    pub(crate) fn states(&self, sequences: &[&Sequence]) -> Result<States> {
        let lengths = Lengths::new(sequences.iter().map(|sequence| sequence.ids.len()).collect());
        let mut rows = self.embed(sequences, lengths.tokens())?;
        let mut scratch = Scratch::default();
        for layer in &self.layers {
            layer.apply(self.arch, &self.config, &lengths, &mut rows, &mut scratch)?;
        }
        Ok(States { rows, lengths, hidden: self.config.hidden })
    }

    /// The sum of each token's three embeddings, normalised.
    fn embed(&self, sequences: &[&Sequence], tokens: usize) -> Result<Vec<f32>> {
        let ModelConfig { hidden, vocabulary, max_positions, layer_norm_eps: eps, .. } = self.config;
        let mut rows = vec![0.0; tokens * hidden];
        let mut position = vec![0.0; hidden];
        let placed = sequences.iter().flat_map(|sequence| {
            self.config.positions.numbered(&sequence.ids).zip((0..).map(|at| at >= sequence.second))
        });
        for (((id, at), is_second), row) in placed.zip(rows.chunks_exact_mut(hidden)) {
            if id as usize >= vocabulary || at >= max_positions {
                return Err(error::internal(format_args!("no embedding of token {id} at position {at}")));
            }
            self.tokens.row(id as usize, row);
            self.positions.row(at, &mut position);
            let of_type = if is_second { &self.second_type } else { &self.first_type };
            for ((x, &of_position), &of_type) in row.iter_mut().zip(&position).zip(of_type) {
                *x += of_position + of_type;
            }
        }
        kernels::layer_norm(self.arch, &mut rows, self.norm.as_norm(eps));
        Ok(rows)
    }
}

/// The final states of the tokens of some sequences.
#[derive(Debug)]
pub(crate) struct States {
    rows: Vec<f32>,
    lengths: Lengths,
    hidden: usize,
}

impl States {
    /// The rows of each sequence, in order, with `hidden` numbers for each token.
    pub(crate) fn each(&self) -> impl Iterator<Item = &[f32]> {
        self.lengths.split(&self.rows, self.hidden)
    }
}

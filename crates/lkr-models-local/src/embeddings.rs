//! The rows of tokens before the first layer.

use lkr_models::Result;
use pulp::Arch;

use crate::config::{Family, ModelConfig, Positions};
use crate::error;
use crate::kernels;
use crate::linear::NormWeights;
use crate::tokens::Sequence;
use crate::weights::{Table, Tensors};

/// The tables of embeddings and their norm.
#[derive(Debug)]
pub(crate) struct Embeddings {
    tokens: Table,
    vocabulary: usize,
    hidden: usize,
    numbering: Positions,
    /// The number of positions.
    max_positions: usize,
    /// Absent where the layers rotate queries and keys instead.
    positions: Option<Table>,
    types: Option<Types>,
    norm: NormWeights,
}

/// The embeddings of the token types.
#[derive(Debug)]
struct Types {
    /// Of type 0, the type of every token of a single text.
    first: Vec<f32>,
    /// Of type 1, the type of the second text of a pair.
    second: Vec<f32>,
}

impl Embeddings {
    pub(crate) fn load(config: &ModelConfig, tensors: &Tensors<'_>) -> Result<Self> {
        let ModelConfig { hidden, vocabulary, token_types, max_positions, layer_norm_eps: eps, .. } = *config;
        let table = |name: &str, rows| tensors.table(&format!("embeddings.{name}.weight"), rows, hidden);
        let (tokens, norm, norm_bias) = match &config.family {
            Family::Bert | Family::DistilBert => ("word_embeddings", "embeddings.LayerNorm", true),
            Family::ModernBert(modern) => ("tok_embeddings", "embeddings.norm", modern.norm_bias),
        };
        let rotates = matches!(config.family, Family::ModernBert(_));
        Ok(Self {
            tokens: table(tokens, vocabulary)?,
            positions: if rotates { None } else { Some(table("position_embeddings", max_positions)?) },
            types: match token_types {
                0 => None,
                count => Some(Types::of(&table("token_type_embeddings", count)?, count, hidden)),
            },
            norm: NormWeights::load(tensors, norm, hidden, norm_bias, eps)?,
            vocabulary,
            hidden,
            numbering: config.positions,
            max_positions,
        })
    }

    /// The sum of each token's embeddings, normalised.
    pub(crate) fn embed(&self, arch: Arch, sequences: &[&Sequence], tokens: usize) -> Result<Vec<f32>> {
        let mut rows = vec![0.0; tokens * self.hidden];
        let mut position = vec![0.0; self.hidden];
        let placed = sequences.iter().flat_map(|sequence| {
            self.numbering.numbered(&sequence.ids).zip((0..).map(|at| at >= sequence.second))
        });
        for (((id, at), is_second), row) in placed.zip(rows.chunks_exact_mut(self.hidden)) {
            if id as usize >= self.vocabulary || at >= self.max_positions {
                return Err(error::internal(format_args!("no embedding of token {id} at position {at}")));
            }
            self.tokens.row(id as usize, row);
            if let Some(positions) = &self.positions {
                positions.row(at, &mut position);
            }
            match &self.types {
                Some(types) => add_both(row, &position, if is_second { &types.second } else { &types.first }),
                None => row.iter_mut().zip(&position).for_each(|(x, &of_position)| *x += of_position),
            }
        }
        kernels::layer_norm(arch, &mut rows, self.norm.as_norm());
        Ok(rows)
    }
}

fn add_both(row: &mut [f32], of_position: &[f32], of_type: &[f32]) {
    for ((x, &of_position), &of_type) in row.iter_mut().zip(of_position).zip(of_type) {
        *x += of_position + of_type;
    }
}

impl Types {
    fn of(table: &Table, count: usize, hidden: usize) -> Self {
        let of_type = |row: usize| {
            let mut numbers = vec![0.0; hidden];
            table.row(row.min(count.saturating_sub(1)), &mut numbers);
            numbers
        };
        Self { first: of_type(0), second: of_type(1) }
    }
}

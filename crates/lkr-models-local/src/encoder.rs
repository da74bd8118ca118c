//! The transformer: tokens in, one vector a sequence out.

use lkr_models::Result;
use pulp::Arch;

use crate::config::ModelConfig;
use crate::error;
use crate::folder::Pooling;
use crate::kernels;
use crate::layer::{Layer, Lengths, NormWeights, Scratch};
use crate::weights::{Table, Tensors};

/// A loaded encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    arch: Arch,
    config: ModelConfig,
    pooling: Pooling,
    tokens: Table,
    positions: Table,
    /// The embedding of token type 0, which every token of a single text has.
    token_type: Vec<f32>,
    norm: NormWeights,
    layers: Vec<Layer>,
}

impl Encoder {
    pub(crate) fn load(config: &ModelConfig, pooling: Pooling, tensors: &Tensors<'_>) -> Result<Self> {
        let hidden = config.hidden;
        let table = |name: &str, rows| tensors.table(&format!("embeddings.{name}.weight"), rows, hidden);
        let mut token_type = vec![0.0; hidden];
        table("token_type_embeddings", config.token_types)?.row(0, &mut token_type);
        Ok(Self {
            arch: Arch::new(),
            pooling,
            tokens: table("word_embeddings", config.vocabulary)?,
            positions: table("position_embeddings", config.max_positions)?,
            token_type,
            norm: NormWeights::load(config, tensors, "embeddings.LayerNorm")?,
            layers: (0..config.layers).map(|i| Layer::load(config, tensors, i)).collect::<Result<_>>()?,
            config: config.clone(),
        })
    }

    /// The unit vectors of `sequences` of token ids, in their order.
    ///
    /// The sequences' tokens lie one after the other, without padding: the linear layers see one matrix of all
    /// tokens, attention one sequence at a time.
    pub(crate) fn encode(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<f32>>> {
        let lengths = Lengths::new(sequences.iter().map(|ids| ids.len()).collect());
        let mut rows = self.embed(sequences, lengths.tokens())?;
        let mut scratch = Scratch::default();
        for layer in &self.layers {
            layer.apply(self.arch, &self.config, &lengths, &mut rows, &mut scratch)?;
        }
        lengths.split(&rows, self.config.hidden).map(|own| self.pool(own)).collect()
    }

    /// The sum of each token's three embeddings, normalised.
    fn embed(&self, sequences: &[&[u32]], tokens: usize) -> Result<Vec<f32>> {
        let ModelConfig { hidden, vocabulary, max_positions, layer_norm_eps: eps, .. } = self.config;
        let mut rows = vec![0.0; tokens * hidden];
        let mut position = vec![0.0; hidden];
        let placed = sequences.iter().flat_map(|ids| self.config.positions.place(ids));
        for ((id, at), row) in placed.zip(rows.chunks_exact_mut(hidden)) {
            if id as usize >= vocabulary || at >= max_positions {
                return Err(error::internal(format_args!("no embedding of token {id} at position {at}")));
            }
            self.tokens.row(id as usize, row);
            self.positions.row(at, &mut position);
            for ((x, &of_position), &of_type) in row.iter_mut().zip(&position).zip(&self.token_type) {
                *x += of_position + of_type;
            }
        }
        kernels::layer_norm(self.arch, &mut rows, self.norm.as_norm(eps));
        Ok(rows)
    }

    /// One vector of length 1 from those of a sequence's tokens.
    fn pool(&self, rows: &[f32]) -> Result<Vec<f32>> {
        let mut tokens = rows.chunks_exact(self.config.hidden);
        let mut vector = tokens.next().ok_or_else(|| error::internal("a sequence without tokens"))?.to_vec();
        let combine: fn(f32, f32) -> f32 = match self.pooling {
            Pooling::Cls => |first, _| first,
            // The sum will do: it has the direction of the mean.
            Pooling::Mean => |sum, x| sum + x,
            Pooling::Max => f32::max,
        };
        for token in tokens {
            for (all, &x) in vector.iter_mut().zip(token) {
                *all = combine(*all, x);
            }
        }
        if kernels::to_unit(&mut vector) {
            Ok(vector)
        } else {
            Err(error::internal("the model answered a vector without a direction"))
        }
    }
}

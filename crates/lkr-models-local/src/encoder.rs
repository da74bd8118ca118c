//! The transformer: token ids to a row of numbers for each token.

use lkr_models::Result;
use pulp::Arch;

use crate::attention::Lengths;
use crate::config::{Family, ModelConfig};
use crate::embeddings::Embeddings;
use crate::kernels;
use crate::layer::Layer;
use crate::linear::{NormWeights, WeightFormat};
use crate::rotary::Rotaries;
use crate::scratch::ScratchPool;
use crate::tokens::Sequence;
use crate::weights::Tensors;

/// A loaded encoder.
#[derive(Debug)]
pub(crate) struct Encoder {
    arch: Arch,
    config: ModelConfig,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    /// The norm behind the last layer, in families whose layers have their norms before them.
    final_norm: Option<NormWeights>,
    scratch: ScratchPool,
}

impl Encoder {
    /// An encoder of texts with up to `max_tokens` tokens.
    pub(crate) fn load(
        config: &ModelConfig,
        max_tokens: usize,
        tensors: &Tensors<'_>,
        format: WeightFormat,
    ) -> Result<Self> {
        // The tables of embeddings go first: they show that the sizes in config.json are those of the file.
        let embeddings = Embeddings::load(config, tensors)?;
        let rotaries = Rotaries::new(config, max_tokens.min(config.usable_positions()));
        let layers = (0..config.layers).map(|i| Layer::load(config, &rotaries, tensors, i, format));
        Ok(Self {
            arch: Arch::new(),
            embeddings,
            layers: layers.collect::<Result<_>>()?,
            final_norm: match &config.family {
                Family::Bert | Family::DistilBert => None,
                Family::ModernBert(modern) => {
                    let (hidden, eps) = (config.hidden, config.layer_norm_eps);
                    Some(NormWeights::load(tensors, "final_norm", hidden, modern.norm_bias, eps)?)
                }
            },
            config: config.clone(),
            scratch: ScratchPool::default(),
        })
    }

    /// The final states of the tokens of `sequences`.
    ///
    /// The tokens of all sequences are concatenated without padding: linear layers process one matrix of all tokens,
    /// attention one sequence at a time.
    pub(crate) fn states(&self, sequences: &[&Sequence]) -> Result<States> {
        let lengths = Lengths::new(sequences.iter().map(|sequence| sequence.ids.len()).collect());
        let mut rows = self.embeddings.embed(self.arch, sequences, lengths.tokens())?;
        self.scratch.with(|scratch| {
            let mut layers = self.layers.iter();
            layers.try_for_each(|layer| layer.apply(self.arch, &self.config, &lengths, &mut rows, scratch))
        })?;
        if let Some(norm) = &self.final_norm {
            kernels::layer_norm(self.arch, &mut rows, norm.as_norm());
        }
        Ok(States { rows, lengths, hidden: self.config.hidden })
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::weights::WeightsFile;
    use crate::{bf16, int8};

    /// Bit for bit, in every family.
    #[test]
    fn states_are_the_same_on_every_instruction_set() {
        for name in ["tiny-bert-mean", "tiny-distilbert-mean", "tiny-modernbert-cls", "tiny-modernbert-dense"]
        {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name);
            let config = ModelConfig::read(&folder.join("config.json")).unwrap();
            let weights = WeightsFile::open(&folder.join("model.safetensors")).unwrap();
            let texts: Vec<Sequence> = [1, 7, 40]
                .map(|length| Sequence::single((0..length).map(|at| at * 31 % 200).collect()))
                .to_vec();
            let states = |format| {
                let encoder = Encoder::load(&config, 48, &weights.tensors().unwrap(), format).unwrap();
                let rows = encoder.states(&texts.iter().collect::<Vec<_>>()).unwrap().rows;
                rows.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            };
            let bytes = states(WeightFormat::Bytes(int8::InstructionSet::best()));
            for set in int8::InstructionSet::available() {
                assert!(states(WeightFormat::Bytes(set)) == bytes, "{name} {set:?}");
            }
            let rounded = states(WeightFormat::Rounded(bf16::InstructionSet::best()));
            for set in bf16::InstructionSet::available() {
                assert!(states(WeightFormat::Rounded(set)) == rounded, "{name} {set:?}");
            }
            let full = states(WeightFormat::Floats);
            assert!(full != bytes && full != rounded && bytes != rounded, "{name}");
        }
    }
}

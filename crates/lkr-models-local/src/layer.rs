//! One layer of the transformer: attention and the feed-forward part.

mod gated;
mod post_norm;

use lkr_models::Result;
use pulp::Arch;

use crate::attention::Lengths;
use crate::config::{Family, ModelConfig};
use crate::linear::WeightFormat;
use crate::rotary::Rotaries;
use crate::scratch::Scratch;
use crate::weights::Tensors;
use gated::GatedLayer;
use post_norm::PostNormLayer;

/// The number of tokens that pass the feed-forward part at a time, so that its wide rows stay in the cache.
const FEED_BLOCK: usize = 96;

/// The weights of one layer.
#[derive(Debug)]
pub(crate) enum Layer {
    /// BERT: a norm behind each part.
    PostNorm(PostNormLayer),
    /// ModernBERT: a norm before each part, rotated queries and keys, a gated feed-forward part.
    Gated(GatedLayer),
}

impl Layer {
    pub(crate) fn load(
        config: &ModelConfig,
        rotaries: &Rotaries,
        tensors: &Tensors<'_>,
        index: usize,
        format: WeightFormat,
    ) -> Result<Self> {
        match &config.family {
            Family::Bert | Family::DistilBert => {
                PostNormLayer::load(config, tensors, index, format).map(Self::PostNorm)
            }
            Family::ModernBert(modern) => {
                let is_local = modern.local.get(index).copied().unwrap_or_default();
                let rotary = rotaries.of_layer(is_local);
                GatedLayer::load(config, modern, rotary, tensors, index, format).map(Self::Gated)
            }
        }
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
        match self {
            Self::PostNorm(layer) => layer.apply(arch, config, lengths, rows, scratch),
            Self::Gated(layer) => layer.apply(arch, config, lengths, rows, scratch),
        }
    }
}

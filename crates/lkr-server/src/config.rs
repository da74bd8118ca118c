//! The configuration: defaults < `lkr.toml` < environment < flags. The table of keys in `keys` serves all four.

mod effective;
mod keys;
mod load;
mod reference;
mod show;
mod values;

pub use effective::{
    Config, LogFormat, ProcessRole, QdrantQuantization, ReadConsistency, StateBackend, VectorsBackend,
};
pub use load::{ConfigSources, LoadedConfig, WrongArgument, command, load};
pub use reference::{KeyDefault, KeyReference, reference};
pub(crate) use show::masked_url;
pub use show::show;

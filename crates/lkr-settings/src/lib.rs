#![doc = include_str!("../README.md")]

mod change;
mod check;
mod derived;
mod error;
mod kept;
mod languages;
mod matching;
mod merge;
mod plugins;
mod records;
mod resolve;
mod runtime;
mod schema;
mod settings;

pub use change::{
    DedupChange, KeyChange, ModelEntryChange, ModelsChange, OcrChange, ParsersChange, PluginChange,
    SettingsChange,
};
pub use derived::Derived;
pub use error::{Error, ErrorKind, Result};
pub use kept::KeptEmbedder;
pub use lkr_sealing::{MASK, SealingKey, Secret};
pub use matching::Match;
pub use plugins::Plugins;
pub use records::is_readable;
pub use runtime::{
    ApiKey, Dedup, DedupStrategy, ModelEntry, Models, OcrChoice, Parsers, PerModel, PluginChoice, Provider,
    RuntimeSettings,
};
pub use settings::{AddressCheck, Settings, Snapshot};

#![doc = include_str!("../README.md")]

mod change;
mod check;
mod derived;
mod error;
mod if_match;
mod iso_639;
mod merge;
mod offline_merge;
mod plugins;
mod previous_embedder;
mod readable;
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
pub use if_match::IfMatch;
pub use lkr_sealing::{MASK, SealingKey, Secret};
pub use offline_merge::SettingsMergePolicy;
pub use plugins::Plugins;
pub use previous_embedder::PreviousEmbedder;
pub use readable::is_readable;
pub use runtime::{
    ApiKey, Dedup, DedupStrategy, ModelEntry, Models, OcrChoice, Parsers, PerModel, PluginChoice, Provider,
    RuntimeSettings,
};
pub use settings::{AddressCheck, Settings, Snapshot};

//! Extracting text from files: the available plugins, and running them.

mod add;
mod plugins;
mod reader;

pub use add::extracted_text;
pub use lkr_parsers::{Format, extension};
pub use lkr_sandbox::{Extracted, FileSource, Limits};
pub use plugins::{FilePlugins, FileTools, PluginNames};
pub use reader::{FileReader, run_worker};

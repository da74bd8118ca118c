//! Extracting text from files: the available plugins, and running them.

mod add;
mod file_error;
mod plugins;
mod reader;

pub use add::extracted_text;
pub(crate) use file_error::FileError;
pub use file_error::refusal;
pub use lkr_parsers::{Format, extension};
pub use lkr_sandbox::{ErrorKind as FileErrorKind, Extracted, FileSource, Limits};
pub use plugins::{FilePlugins, FileTools, PluginNames};
pub use reader::{FileReader, run_worker};

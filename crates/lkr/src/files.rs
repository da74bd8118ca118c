//! Extracting text from files and showing their pages: the available plugins, and running them.

mod add;
mod file_error;
mod pages;
mod plugins;
mod reader;
mod worker;

pub use add::extracted_text;
pub(crate) use file_error::FileError;
pub use file_error::refusal;
pub use lkr_parsers::{Format, extension};
pub use lkr_parsers_pdf::{Passage, PlacedLetter, PlacedText};
pub use lkr_sandbox::{ErrorKind as FileErrorKind, Extracted, FileSource, Limits, hide_process_memory};
pub use plugins::{FilePlugins, FileTools, PluginNames};
pub use reader::FileReader;
pub use worker::run_worker;

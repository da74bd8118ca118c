#![doc = include_str!("../README.md")]

mod data_files;
mod process;
mod program_files;
mod tesseract;

pub use program_files::ProgramFiles;
pub use tesseract::Tesseract;

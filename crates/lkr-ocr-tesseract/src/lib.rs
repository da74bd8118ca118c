#![doc = include_str!("../README.md")]

mod data_files;
mod process;
mod tesseract;

pub use tesseract::Tesseract;

#![doc = include_str!("../README.md")]

mod languages;
mod process;
mod tesseract;

pub use tesseract::Tesseract;

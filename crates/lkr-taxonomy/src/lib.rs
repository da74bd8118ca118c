#![doc = include_str!("../README.md")]

mod category;
mod classifier;
mod error;
mod json;
mod node;
mod read;
mod similarity;
mod taxonomy;
mod yaml;

pub use category::Category;
pub use classifier::{Classifier, Digest, Verdict};
pub use error::{Error, ErrorKind, Result};
pub use similarity::{SimilarityClassifier, SimilarityOptions};
pub use taxonomy::Taxonomy;

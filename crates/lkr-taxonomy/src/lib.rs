#![doc = include_str!("../README.md")]

mod category;
mod chat;
mod classifier;
mod error;
mod json;
mod node;
mod similarity;
mod taxonomy;
mod validate;
mod yaml;

pub use category::Category;
pub use chat::ChatClassifier;
pub use classifier::{Classification, Classifier, ClassifierInput, ClassifierOutput};
pub use error::{Error, ErrorKind, Result};
pub use similarity::{SimilarityClassifier, SimilarityOptions};
pub use taxonomy::Taxonomy;

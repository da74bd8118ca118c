//! Model folders and comparisons of vectors, shared by the tests.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::path::{Path, PathBuf};

use lkr_models::Embedder;
use lkr_models::Precision;
use lkr_models_local::{LocalEmbedder, LocalOptions, LocalReranker, RerankOptions};
use tempfile::TempDir;

/// The folders of embedding models in `tests/fixtures`, at least one of each family.
pub(crate) const FAMILIES: [&str; 7] = [
    "tiny-bert-cls",
    "tiny-bert-dense",
    "tiny-bert-mean",
    "tiny-distilbert-mean",
    "tiny-modernbert-cls",
    "tiny-modernbert-dense",
    "tiny-xlm-roberta-mean",
];

/// A folder of `tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A copy of a fixture that a test can damage.
pub(crate) fn copy(name: &str) -> TempDir {
    fn walk(from: &Path, to: &Path) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                walk(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), target).unwrap();
            }
        }
    }
    let dir = TempDir::new().unwrap();
    walk(&fixture(name), dir.path());
    dir
}

pub(crate) fn open(dir: &Path) -> LocalEmbedder {
    LocalEmbedder::open(dir, LocalOptions::default()).unwrap()
}

#[allow(dead_code, reason = "not every test uses it")]
pub(crate) fn open_with(dir: &Path, precision: Precision) -> LocalEmbedder {
    LocalEmbedder::open(dir, LocalOptions { precision, ..LocalOptions::default() }).unwrap()
}

pub(crate) fn open_reranker(dir: &Path) -> LocalReranker {
    LocalReranker::open(dir, &RerankOptions::default()).unwrap()
}

/// The folder of all-MiniLM-L6-v2. Without it the test is skipped; in CI it fails.
pub(crate) fn minilm() -> Option<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let dir = std::env::var_os("LKR_MODEL_DIR")
        .map_or_else(|| workspace.join("models/all-MiniLM-L6-v2"), PathBuf::from);
    if dir.join("model.safetensors").is_file() {
        return Some(dir);
    }
    lkr_test_support::skip("no model; set LKR_MODEL_DIR or run `cargo xtask model`");
    None
}

pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    assert_eq!(a.len(), b.len());
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

/// Asserts that a vector has `profile().dims` numbers and length 1, as `Embedder` requires.
pub(crate) fn assert_unit(embedder: &LocalEmbedder, vector: &[f32]) {
    assert_eq!(vector.len(), embedder.profile().dims);
    assert!((cosine(vector, vector) - 1.0).abs() < 1e-6, "not finite");
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    assert!((length - 1.0).abs() < 1e-5, "length {length}");
}

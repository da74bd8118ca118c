use std::path::PathBuf;

use crate::workspace;

/// The folder of the embedding model; `None` if it is absent, which skips the calling test.
#[must_use]
pub fn model_dir() -> Option<PathBuf> {
    let dir = workspace().join("models/all-MiniLM-L6-v2");
    if dir.join("model.safetensors").is_file() {
        return Some(dir);
    }
    lkr_test_support::skip(&format!("no model in {}; run `cargo xtask model`", dir.display()));
    None
}

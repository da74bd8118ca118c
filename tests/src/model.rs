use std::{env, path::PathBuf};

use crate::binary::workspace;

/// The folder of the embedding model. Where it is not there, says that `test` is skipped and answers nothing.
///
/// # Panics
/// Where it is not there although `CI` is set.
#[must_use]
pub fn model_dir(test: &str) -> Option<PathBuf> {
    let dir = workspace().join("models/all-MiniLM-L6-v2");
    if dir.join("model.safetensors").is_file() {
        return Some(dir);
    }
    assert!(env::var_os("CI").is_none(), "{test}: no model in {}", dir.display());
    eprintln!("skipped: {test}: no model in {}; cargo xtask model fetches it", dir.display());
    None
}

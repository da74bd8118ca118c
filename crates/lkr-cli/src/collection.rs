//! Reading collections of documents with queries and judgements, and plain files.

mod documents;
mod files;
mod gold;
mod lines;

pub(crate) use documents::{Input, collection};
pub(crate) use files::{file_name, files_below, is_collection, is_known};
pub(crate) use gold::{Gold, Query};
pub(crate) use lines::json_lines;

use std::path::Path;

use anyhow::{Context, Result};

/// The name of a folder, with which the `source` of its documents begins.
pub(crate) fn name_of(dir: &Path) -> Result<String> {
    let dir = dir.canonicalize().with_context(|| format!("open {}", dir.display()))?;
    let name = dir.file_name().with_context(|| format!("{} has no name", dir.display()))?;
    Ok(name.to_string_lossy().into_owned())
}

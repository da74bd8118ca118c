//! The file of `--per-query`: one line for each query, system and target.

use std::{fs::File, io::Write, path::Path};

use anyhow::{Context, Result};
use lkr_eval::Measures;
use serde::{Deserialize, Serialize};

use crate::{collection::json_lines, eval::judge::Target};

/// The number of items that are written of a ranking.
const MAX_ITEMS: usize = 10;

/// The judged results of a system for a query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct JudgedQuery {
    pub(crate) query: String,
    pub(crate) system: String,
    pub(crate) target: Target,
    #[serde(flatten)]
    pub(crate) measures: Measures,
    /// The first ten items.
    pub(crate) first: Vec<String>,
}

impl JudgedQuery {
    pub(super) fn new(
        query: &str,
        system: &str,
        target: Target,
        measures: Measures,
        mut items: Vec<String>,
    ) -> Self {
        items.truncate(MAX_ITEMS);
        Self { query: query.to_owned(), system: system.to_owned(), target, measures, first: items }
    }
}

pub(super) fn write(path: &Path, judged: &[JudgedQuery]) -> Result<()> {
    let context = || format!("write {}", path.display());
    let mut file = std::io::BufWriter::new(File::create(path).with_context(context)?);
    for each in judged {
        serde_json::to_writer(&mut file, each).with_context(context)?;
        file.write_all(b"\n").with_context(context)?;
    }
    file.flush().with_context(context)
}

pub(crate) fn read(path: &Path) -> Result<Vec<JudgedQuery>> {
    json_lines(path)
}

//! The file of `--per-query`: one line for each query, system and target.

use std::{io::Write as _, path::Path};

use anyhow::Result;
use lkr_eval::Measures;
use serde::{Deserialize, Serialize};

use crate::{collection::json_lines, eval::judge::Target, output_file::OutputFile};

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

pub(super) fn write(file: OutputFile, judged: &[JudgedQuery]) -> Result<()> {
    file.write(|file| {
        judged.iter().try_for_each(|each| {
            serde_json::to_writer(&mut *file, each)?;
            file.write_all(b"\n")
        })
    })
}

pub(crate) fn read(path: &Path) -> Result<Vec<JudgedQuery>> {
    json_lines(path)
}

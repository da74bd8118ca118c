//! `lkr search` and `lkr ask`.

mod args;
mod results;

use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

pub(crate) use args::{Args, QueryArgs};

use crate::{
    program::Program,
    terminal::{Style, field, plural, spinner, wrap},
};

/// Whether a search is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Passages,
    Summary,
}

/// Searches and prints the passages, best first, or the summary with its sources.
pub(crate) fn run(args: &Args, answer: Answer, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let connection = args.common.target.connect(program)?;
    let wait = spinner(&output, "searching");
    let response = connection.client.post("/search", &args.body(answer)?);
    wait.finish_and_clear();
    let found = response?.data;
    connection.close()?;
    let results = found.get("results").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    output.warnings_of(&found)?;
    match (output.style, answer) {
        (Style::Json, _) => output.json(&found)?,
        (Style::Names, _) => results::print_ids(&output, results)?,
        (Style::People, Answer::Passages) => {
            results::print(&output, results)?;
            let took = field(&found, "took_ms");
            output.note(&format!("{} in {took} ms", plural(results.len() as u64, "result")))?;
        }
        (Style::People, Answer::Summary) => {
            let summary = found.get("summary").unwrap_or(&Value::Null);
            let text = output.shown(&field(summary, "text"));
            let width = output.width().unwrap_or(usize::MAX);
            let paragraphs = text.split("\n\n").map(|paragraph| wrap(paragraph, width, ""));
            output.print(&paragraphs.collect::<Vec<_>>().join("\n"))?;
            results::print_citations(&output, summary, results)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

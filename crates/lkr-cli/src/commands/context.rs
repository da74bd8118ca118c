//! `lkr context`: the best passages within a budget of tokens, as one text for a prompt.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    commands::{Common, search::QueryArgs},
    program::Program,
    terminal::{Style, field},
};

/// The arguments of `lkr context`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    query: QueryArgs,
    /// Stay within this many tokens, 50 to 32,000. [default: 2000]
    #[arg(long, short = 't', value_name = "COUNT")]
    max_tokens: Option<u64>,
    #[command(flatten)]
    common: Common,
}

/// Prints the text of the context.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let mut body = args.query.body()?;
    body.extend(args.max_tokens.map(|tokens| ("max_tokens".to_owned(), json!(tokens))));
    let connection = args.common.target.connect(program)?;
    let found = connection.client.post("/context", &Value::Object(body))?.data;
    connection.close()?;
    output.warnings_of(&found)?;
    let passages = found.get("passages").and_then(Value::as_array).into_iter().flatten();
    match output.style {
        Style::Json => output.json(&found)?,
        Style::Names => {
            let mut ids: Vec<String> = passages.map(|passage| field(passage, "doc_id")).collect();
            ids.dedup();
            ids.iter().try_for_each(|id| output.line(id))?;
        }
        Style::People => {
            output.line(output.shown(&field(&found, "text")).trim_end())?;
            output.note(&format!("{} tokens", field(&found, "tokens")))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

//! `lkr ls`: lists documents.

use std::process::ExitCode;

use anyhow::Result;

use crate::{
    arguments::expression,
    commands::{Common, List, query::QueryString},
    program::Program,
    terminal::{Column, day, field, plural},
};

/// The arguments of `lkr ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// List documents whose title begins with this text.
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// List the documents of this space.
    #[arg(long, short, value_name = "NAME")]
    space: Option<String>,
    /// List documents of this category.
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    /// List documents with exactly this source.
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// List documents that match this filter expression.
    #[arg(long = "where", value_name = "JSON")]
    condition: Option<String>,
    /// List this many documents at most. [default: all]
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<usize>,
    #[command(flatten)]
    common: Common,
}

/// Prints the documents, newest first.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let condition = args.condition.as_deref().map(expression).transpose()?;
    let query = QueryString::default()
        .with_some("q", args.text.clone())
        .with_some("space", args.space.clone())
        .with_some("category", args.category.clone())
        .with_some("source", args.source.clone())
        .with_some("where", condition.map(|condition| condition.to_string()));
    let list = List {
        name: "doc_id",
        columns: &[
            Column::Fixed("DOCUMENT"),
            Column::Text("TITLE"),
            Column::Text("SOURCE"),
            Column::Text("SPACE"),
            Column::Fixed("UPDATED (UTC)"),
        ],
        row: |item| {
            vec![
                field(item, "doc_id"),
                field(item, "title"),
                field(item, "source"),
                field(item, "space"),
                day(item, "updated_at"),
            ]
        },
    };
    let connection = args.common.target.connect(program)?;
    let count = list.print(&connection.client, &output, "/documents", &query, args.limit)?;
    connection.close()?;
    let first = if args.limit == Some(count) { "the first " } else { "" };
    output.note(&format!("{first}{}", plural(count as u64, "document")))?;
    Ok(ExitCode::SUCCESS)
}

//! `lkr eval`: runs the queries of a collection against a knowledge base in this process or a server, and measures the
//! results.

mod args;
mod citations;
mod context;
mod judge;
mod local;
mod local_report;
mod output;
mod per_query;
mod server;
mod server_report;
mod server_search;
mod systems;

pub(crate) use args::Args;
pub(crate) use judge::Target;
pub(crate) use per_query::{JudgedQuery, read as read_per_query};

use std::{
    io::{self, Write as _},
    process::ExitCode,
};

use anyhow::{Result, ensure};

use crate::collection::{Gold, Input};

/// Warns of judged documents that a collection lacks, which no search can find.
///
/// # Errors
/// If it has none of them.
fn check_judgements(gold: &Gold, name: &str, inputs: &[Input]) -> Result<()> {
    let prefix = format!("{name}:");
    let ids = inputs.iter().filter_map(|input| input.source.strip_prefix(prefix.as_str())).collect();
    let (unknown, judged) = gold.unknown_documents(&ids);
    let Some(first) = unknown.first() else { return Ok(()) };
    ensure!(unknown.len() < judged, "no judged document is in the collection: {first} is not, for example");
    let count = unknown.len();
    let warning =
        format!("warning: {count} of {judged} judged documents are not in the collection, such as {first}");
    Ok(writeln!(io::stderr(), "{warning}")?)
}

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match args {
        args if args.login.has_server_flag() => server::run(args),
        args if args.context => context::run(args),
        args => local::run(args),
    }
}

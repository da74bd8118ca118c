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

use std::process::ExitCode;

use anyhow::Result;

/// Runs the evaluation and prints the figures. Fails if a citation does not match its document.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match args {
        args if args.login.has_server_flag() => server::run(args),
        args if args.context => context::run(args),
        args => local::run(args),
    }
}

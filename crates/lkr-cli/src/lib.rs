#![doc = include_str!("../README.md")]

mod backup;
mod bench;
mod collection;
mod compare;
mod doctor;
mod error_line;
mod eval;
mod folders;
mod http;
mod import;
mod ingest;
mod local_kb;
mod mcp;
mod parse;
mod stats;
mod top;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

use error_line::error_line;

/// Work with an lkr knowledge base or server.
#[derive(Debug, Parser)]
#[command(name = "lkr", version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Send documents to a server and wait until they are searchable.
    Ingest(ingest::Args),
    /// Run the queries of a collection and measure the results against its judgements.
    Eval(eval::Args),
    /// Compare two evaluations query by query.
    Compare(compare::Args),
    /// Extract the text of PDF, DOCX, HTML, Markdown and plain text files.
    Parse(parse::Args),
    /// Measure performance ratios.
    Bench(bench::Args),
    /// Write documents, accounts, settings and tasks to one archive.
    Backup(backup::BackupArgs),
    /// Restore a backup into empty folders.
    Restore(backup::RestoreArgs),
    /// Check everything that is stored, and repair it on request. No server may be running.
    Doctor(doctor::Args),
    /// Serve the Model Context Protocol on standard input and output, from a server or a data folder.
    Mcp(mcp::Args),
    /// Show what a server does, refreshed in the terminal.
    Top(top::Args),
    /// Run the HTTP service. `lkr serve --help` lists its flags.
    #[command(disable_help_flag = true)]
    Serve(ServerArgs),
    /// Set a new password for the account `admin`. No server may be running.
    #[command(disable_help_flag = true)]
    ResetAdmin(ServerArgs),
}

/// Arguments that the server parses itself.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// Runs the command line with the arguments of this process. `serve` runs the server: its argument is the server's
/// command line, the program's name first.
pub fn main(serve: impl FnOnce(Vec<OsString>) -> ExitCode) -> ExitCode {
    // A parser worker closes inherited file descriptors, which must happen before other threads exist.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == parse::PARSE_WORKER) {
        return lkr::files::run_worker();
    }
    let outcome = match Cli::parse().command {
        Command::Serve(ServerArgs { flags }) => return serve(server_arguments(&["lkr serve"], flags)),
        Command::ResetAdmin(ServerArgs { flags }) => {
            return serve(server_arguments(&["lkr", "reset-admin"], flags));
        }
        Command::Ingest(args) => ingest::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Parse(args) => parse::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Backup(args) => backup::run_backup(&args),
        Command::Restore(args) => backup::run_restore(&args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Doctor(args) => return doctor::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "lkr: {}", error_line(&error));
        ExitCode::FAILURE
    })
}

fn server_arguments(start: &[&str], flags: Vec<OsString>) -> Vec<OsString> {
    start.iter().map(OsString::from).chain(flags).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serve_passes_flags_and_help_to_the_server() {
        let cli = Cli::try_parse_from(["lkr", "serve", "--listen", "127.0.0.1:1", "--help"]).unwrap();
        let Command::Serve(ServerArgs { flags }) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!(flags, ["--listen", "127.0.0.1:1", "--help"]);
        assert_eq!(
            server_arguments(&["lkr", "reset-admin"], vec!["-x".into()]),
            ["lkr", "reset-admin", "-x"]
        );
    }

    #[test]
    fn command_line_definition_is_valid() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}

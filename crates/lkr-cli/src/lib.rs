#![doc = include_str!("../README.md")]

mod backup;
mod bench;
mod collection;
mod compare;
mod doctor;
mod eval;
mod folders;
mod http;
mod import;
mod ingest;
mod local_kb;
mod parse;
mod stats;

use std::{ffi::OsString, io::Write, process::ExitCode};

use clap::{Parser, Subcommand};

/// The command line of lkr.
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
    /// Run the queries of a collection and measure the answers against its judgements.
    Eval(eval::Args),
    /// Compare two evaluations query by query.
    Compare(compare::Args),
    /// Print or write the text of files: PDF, DOCX, HTML, Markdown and plain text.
    Parse(parse::Args),
    /// Measure ratios.
    Bench(bench::Args),
    /// Make one file of everything: documents, accounts, settings, tasks.
    Backup(backup::BackupArgs),
    /// Put a backup into folders in which there is nothing.
    Restore(backup::RestoreArgs),
    /// Check everything that is stored, while no server runs, and mend it.
    Doctor(doctor::Args),
    /// Run the HTTP service; `lkr serve --help` lists its flags.
    #[command(disable_help_flag = true)]
    Serve(ServerArgs),
    /// Give the account `admin` a new password while no server runs.
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
    // A parser worker must close what the process has open before another thread may use it.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == parse::PARSE_WORKER) {
        return lkr::files::work();
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
        Command::Doctor(args) => return doctor::run(&args),
    };
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(std::io::stderr(), "lkr: {}", line(&error));
        ExitCode::FAILURE
    })
}

fn server_arguments(start: &[&str], flags: Vec<OsString>) -> Vec<OsString> {
    start.iter().map(OsString::from).chain(flags).collect()
}

/// An error and its causes in one line. Many say their cause themselves; it is not said again.
fn line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |line, cause| match line.as_str() {
        "" => cause,
        said if said.contains(&cause) => line,
        _ => format!("{line}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_are_said_once() {
        let error = anyhow!("no such file").context("open a: no such file").context("read collection");
        assert_eq!(line(&error), "read collection: open a: no such file");
    }

    #[test]
    fn serve_passes_flags_and_help_on_to_the_server() {
        let cli = Cli::try_parse_from(["lkr", "serve", "--listen", "127.0.0.1:1", "--help"]).unwrap();
        let Command::Serve(ServerArgs { flags }) = cli.command else { panic!("{:?}", cli.command) };
        assert_eq!(flags, ["--listen", "127.0.0.1:1", "--help"]);
        assert_eq!(
            server_arguments(&["lkr", "reset-admin"], vec!["-x".into()]),
            ["lkr", "reset-admin", "-x"]
        );
    }

    #[test]
    fn arguments_are_well_formed() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}

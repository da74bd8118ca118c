#![doc = include_str!("../README.md")]

mod add;
mod arguments;
mod backup;
mod bench;
mod collection;
mod commands;
mod compare;
mod connection;
mod doctor;
#[cfg(test)]
mod documented;
mod error_line;
mod eval;
mod exit;
mod folders;
mod http;
mod import;
mod leading_flags;
mod local_kb;
mod mcp;
mod migrate;
mod output_file;
mod parse;
mod program;
mod stats;
mod sync;
mod terminal;
mod top;
mod wait;

use std::{ffi::OsString, io::Write, process::ExitCode};

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};
use console::Style;

use commands::{
    account, completions, context, get, groups, keys, ls, rm,
    search::{self, Answer},
    spaces, status, tasks, users,
};
use exit::{Exit, advice, exit_of, reason};
use leading_flags::behind_command;

pub use program::{LocalServer, OpeningStores, Program};

/// Search your own documents, and answer from them with exact citations.
#[derive(Debug, Parser)]
#[command(
    name = "lkr",
    version,
    max_term_width = 100,
    after_help = "Begin with:\n\
                  \x20 lkr serve                    (in another terminal)\n\
                  \x20 lkr login\n\
                  \x20 lkr add FOLDER\n\
                  \x20 lkr search \"a question\"\n\n\
                  A command works on a server, named by --server, LKR_URL or 'lkr login', or with\n\
                  --data-dir on a folder. Those flags, --json and -q may also stand before the\n\
                  command: lkr --json ls.\n\n\
                  Exit codes: 0 done, 1 failed, 2 wrong usage, 3 refused, 4 not found, 5 done in\n\
                  part, 6 unreachable."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the HTTP service.
    #[command(disable_help_flag = true)]
    Serve(ServerArgs),
    /// Log in to a server, and keep an API key for it.
    Login(account::LoginArgs),
    /// Delete the key and the login.
    Logout(account::LogoutArgs),
    /// Show the server, the account and the number of documents.
    Status(status::Args),
    /// Add files, folders, pages or texts, and wait until they are searchable.
    #[command(alias = "ingest")]
    Add(add::Args),
    /// Make the documents of a space equal to a folder: add, replace, move and delete.
    Sync(sync::Args),
    /// Find passages.
    Search(search::Args),
    /// Answer a question from the documents, with citations.
    Ask(search::Args),
    /// Print the best passages within a budget of tokens, for a prompt.
    Context(context::Args),
    /// List documents.
    Ls(ls::Args),
    /// Show a document, its text, chunks or original file.
    Get(get::Args),
    /// Delete documents.
    Rm(rm::Args),
    /// List tasks; or show, await, retry and cancel them.
    Tasks(tasks::Args),
    /// List spaces; or create, change and delete them, and say who may read and write them.
    Spaces(spaces::Args),
    /// List groups of accounts; or create, change and delete them.
    Groups(groups::Args),
    /// List accounts; or create, change and delete them.
    Users(users::Args),
    /// List API keys; or create and delete them.
    Keys(keys::Args),
    /// Serve the Model Context Protocol on standard input and output, from a server or a data folder.
    Mcp(mcp::Args),
    /// Show what a server does, refreshed in the terminal.
    Top(top::Args),
    /// Write documents, accounts, settings and tasks to one archive.
    Backup(backup::BackupArgs),
    /// Restore a backup into empty folders.
    Restore(backup::RestoreArgs),
    /// Check everything that is stored, and repair it on request. No server may be running on a data folder.
    Doctor(doctor::Args),
    /// Move records, points, texts and originals to other stores.
    Migrate(migrate::Args),
    /// Set a new password for the account `admin`. No server may be running.
    #[command(disable_help_flag = true)]
    ResetAdmin(ServerArgs),
    /// Extract the text of PDF, DOCX, HTML, Markdown and plain text files.
    Parse(parse::Args),
    /// Run the queries of a collection and measure the results against its judgements.
    Eval(eval::Args),
    /// Compare two evaluations query by query.
    Compare(compare::Args),
    /// Measure performance ratios.
    Bench(bench::Args),
    /// Print the completions of a shell.
    Completions(completions::CompletionsArgs),
    /// Print the manual page, or write those of all commands.
    Man(completions::ManArgs),
}

/// Arguments that the server parses itself.
#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// The flags of 'lkr serve'; 'lkr serve --help' lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAGS")]
    flags: Vec<OsString>,
}

/// Runs the command line with the arguments of this process.
pub fn main(program: &Program) -> ExitCode {
    // A parser worker closes inherited file descriptors, which must happen before other threads exist.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == parse::PARSE_WORKER) {
        return lkr::files::run_worker();
    }
    let arguments = behind_command(&Cli::command(), std::env::args_os());
    run(Cli::parse_from(arguments).command, program).unwrap_or_else(|error| {
        print_error(&error);
        exit_of(&error).into()
    })
}

/// The definition of the command line, with the server's flags below `serve`.
#[must_use]
pub fn definition(program: &Program) -> clap::Command {
    let serve = (program.flags)().name("serve").about("Run the HTTP service").version(None::<&str>);
    Cli::command().mut_subcommand("serve", |_| serve)
}

fn run(command: Command, program: &Program) -> Result<ExitCode> {
    match command {
        Command::Serve(ServerArgs { flags }) => Ok((program.serve)(server_arguments(&["lkr serve"], flags))),
        Command::ResetAdmin(ServerArgs { flags }) => {
            Ok((program.serve)(server_arguments(&["lkr", "reset-admin"], flags)))
        }
        Command::Login(args) => account::log_in(&args),
        Command::Logout(args) => account::log_out(&args),
        Command::Status(args) => status::run(&args, program),
        Command::Add(args) => add::run(&args, program),
        Command::Sync(args) => sync::run(&args, program),
        Command::Search(args) => search::run(&args, Answer::Passages, program),
        Command::Ask(args) => search::run(&args, Answer::Summary, program),
        Command::Context(args) => context::run(&args, program),
        Command::Ls(args) => ls::run(&args, program),
        Command::Get(args) => get::run(&args, program),
        Command::Rm(args) => rm::run(&args, program),
        Command::Tasks(args) => tasks::run(&args, program),
        Command::Spaces(args) => spaces::run(&args, program),
        Command::Groups(args) => groups::run(&args, program),
        Command::Users(args) => users::run(&args, program),
        Command::Keys(args) => keys::run(&args, program),
        Command::Mcp(args) => mcp::run(&args),
        Command::Top(args) => top::run(&args),
        Command::Backup(args) => backup::run_backup(&args),
        Command::Restore(args) => backup::run_restore(&args),
        Command::Doctor(args) => Ok(doctor::run(&args, program)),
        Command::Migrate(args) => migrate::run(&args, program),
        Command::Parse(args) => parse::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => completions::completions(&args, definition(program)),
        Command::Man(args) => completions::man(&args, definition(program)),
    }
}

/// Prints an error in one line, and below it what to do about it.
fn print_error(error: &anyhow::Error) {
    let mut err = std::io::stderr();
    // With the standard error closed there is nowhere to report to.
    let _ = writeln!(err, "lkr: {}", reason(error));
    if let Some(advice) = advice(error).filter(|_| exit_of(error) != Exit::Usage) {
        let label = Style::new().for_stderr().bold().apply_to("hint:");
        let _ = writeln!(err, "{label} {advice}");
    }
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
        Cli::command().debug_assert();
    }
}

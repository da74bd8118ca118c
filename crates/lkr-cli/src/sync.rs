//! `lkr sync`: makes the documents of a space equal to a folder.

mod print;
mod progress;
mod remote;
mod watch;

use std::{
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow};
use lkr::files::Format;
use lkr_sync::{
    ApplyOptions, Error, ErrorKind, FolderId, FolderSync, Identity, Opening, Options, Plan, Preview, Report,
};

use crate::{
    commands::{Common, account::machine},
    exit::{Exit, exit_of, not_found, reason, usage},
    program::Program,
    terminal::{Output, confirm, plural},
};
use progress::Progress;
use remote::HttpRemote;

/// How soon the server is tried again after it could not be reached, if the folder is watched.
const RETRY: Duration = Duration::from_secs(10);

/// The arguments of `lkr sync`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Hidden files, symbolic links and what .gitignore and .lkrignore files name are left out. What is known of \
                        the folder is kept in FOLDER/.lkr.\n\n\
                        Examples:\n\
                        \x20 lkr sync handbook --space handbook --dry-run\n\
                        \x20 lkr sync handbook --space handbook --delete --watch"
)]
pub(crate) struct Args {
    /// The folder. Files of known formats are sent; .gitignore and .lkrignore files say which are not.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// The space whose documents become equal to the folder.
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    space: String,
    /// Delete the documents of files that are gone, without asking.
    #[arg(long)]
    delete: bool,
    /// Print what would be done, and do nothing.
    #[arg(long, conflicts_with = "watch")]
    dry_run: bool,
    /// Go on, and follow the changes of the folder.
    #[arg(long)]
    watch: bool,
    /// Send files again that the server refused before, although they did not change.
    #[arg(long)]
    retry_refused: bool,
    /// Give the folder this id, of A-Z a-z 0-9 . _ -: for checkouts that are made anew each time.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["moved", "copied"])]
    id: Option<String>,
    /// The folder was moved here, for example from another machine: go on with its documents.
    #[arg(long)]
    moved: bool,
    /// The folder was copied here, for example from another machine: give it documents of its own.
    #[arg(long, conflicts_with = "moved")]
    copied: bool,
    /// Leave out files that are larger, in megabytes.
    #[arg(long, value_name = "MB", default_value_t = 50)]
    max_size_mb: u64,
    /// List each file that is sent, moved or deleted.
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,
    #[command(flatten)]
    common: Common,
}

/// Synchronises the folder once, or until the program is interrupted.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    if !args.folder.is_dir() {
        return Err(not_found(format!("{} is no folder", args.folder.display())));
    }
    let options = options(args)?;
    let target = &args.common.target;
    let connect = || {
        // A dry run makes no knowledge base.
        let connection =
            if args.dry_run { target.log_in(program) } else { target.log_in_or_create(program) }?;
        let remote = HttpRemote::connect(connection.client.clone(), &args.space)?;
        Ok((connection, remote))
    };
    let (connection, remote) =
        if args.watch { until_reachable(&output, connect, thread::sleep)? } else { connect()? };
    let exit = if args.dry_run {
        preview(&remote, options, args, &output)
    } else {
        synchronise(&remote, options, args, &output)
    };
    connection.close()?;
    exit.map(ExitCode::from)
}

/// Connects again while the server cannot be reached, and says why when that changes.
fn until_reachable<T>(
    output: &Output,
    mut connect: impl FnMut() -> Result<T>,
    pause: impl Fn(Duration),
) -> Result<T> {
    let mut last_reason = String::new();
    loop {
        match connect() {
            Err(error) if exit_of(&error) == Exit::Unreachable => {
                let reason = reason(&error);
                if reason != last_reason {
                    output.warn(&format!("{reason}; trying again every {} s", RETRY.as_secs()))?;
                    last_reason = reason;
                }
                pause(RETRY);
            }
            result => return result,
        }
    }
}

/// Prints what would be done.
fn preview(remote: &HttpRemote, options: Options, args: &Args, output: &Output) -> Result<Exit> {
    let mut preview = Preview::open(&args.folder, options).map_err(explained)?;
    note_opening(output, preview.opening(), preview.root())?;
    let progress = Progress::new(output, args.verbose);
    let plan = preview.plan(remote, &progress).map_err(|error| remote.cause(error))?;
    progress.finish();
    print::plan(output, &plan, args.delete)
}

fn synchronise(remote: &HttpRemote, options: Options, args: &Args, output: &Output) -> Result<Exit> {
    let mut sync = FolderSync::open(&args.folder, options).map_err(explained)?;
    note_opening(output, sync.opening(), sync.root())?;
    if args.watch {
        watch::watch(&mut sync, remote, args, output)
    } else {
        once(&mut sync, remote, args, output)
    }
}

/// Says that a folder was found in another place. One at the same path on another machine needs no note.
fn note_opening(output: &Output, opening: &Opening, root: &Path) -> Result<()> {
    match opening {
        Opening::Copied { from } => {
            output.note(&format!("this folder is a copy of {}; it gets documents of its own", from.display()))
        }
        Opening::Moved { from } if from != root => {
            output.note(&format!("this folder was moved from {}; it keeps its documents", from.display()))
        }
        _ => Ok(()),
    }
}

fn options(args: &Args) -> Result<Options> {
    let identity = match (args.moved, args.copied) {
        (true, _) => Some(Identity::Moved),
        (_, true) => Some(Identity::Copied),
        _ => None,
    };
    let id = args.id.as_deref().map(str::parse::<FolderId>).transpose();
    let id = id.map_err(|error| usage(error.to_string()))?;
    Ok(Options {
        target: format!("{} {}", args.common.target.name()?, args.space),
        machine: machine(),
        id,
        identity,
        extensions: Format::extensions()
            .map(|extension| extension.trim_start_matches('.').to_owned())
            .collect(),
        max_bytes: args.max_size_mb.saturating_mul(1024 * 1024),
        retry_refused: args.retry_refused,
    })
}

fn once(sync: &mut FolderSync, remote: &HttpRemote, args: &Args, output: &Output) -> Result<Exit> {
    let progress = Progress::new(output, args.verbose);
    let started = Instant::now();
    let plan = sync.plan(remote, &progress).map_err(|error| remote.cause(error))?;
    let delete = args.delete || (!plan.deletes.is_empty() && may_delete(&progress, &plan)?);
    let report = apply(sync, plan, remote, delete, &progress)?;
    progress.finish();
    print::report(output, &report, started.elapsed())
}

/// Asks whether documents may be deleted, where somebody can answer.
fn may_delete(progress: &Progress, plan: &Plan) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(false);
    }
    progress.finish();
    print::deletes(plan)?;
    let question = format!("Delete {}, whose files are gone?", plural(plan.deletes.len() as u64, "document"));
    confirm(&question, "--delete")
}

fn apply(
    sync: &mut FolderSync,
    plan: Plan,
    remote: &HttpRemote,
    delete: bool,
    progress: &Progress,
) -> Result<Report> {
    let options = ApplyOptions { delete, ..ApplyOptions::default() };
    sync.apply(plan, remote, options, progress).map_err(|error| remote.cause(error))
}

/// An error of the folder, with what to do about it.
fn explained(error: Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::MovedOrCopied => usage(format!(
            "{error}; pass --moved if it is the same folder in another place, or --copied to give this one documents of \
             its own"
        )),
        _ => anyhow!(error),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::terminal::OutputArgs;

    fn unreachable() -> anyhow::Error {
        ureq::Error::Io(io::Error::from(io::ErrorKind::ConnectionRefused)).into()
    }

    /// Connects with these results one after another; the pauses between them.
    fn pauses(results: Vec<Result<()>>) -> (Result<()>, Vec<Duration>) {
        let (output, pauses) = (OutputArgs::default().output(), RefCell::new(Vec::new()));
        let mut results = results.into_iter();
        let connect = || results.next().expect("no further attempt");
        let result = until_reachable(&output, connect, |pause| pauses.borrow_mut().push(pause));
        (result, pauses.into_inner())
    }

    #[test]
    fn connection_is_repeated_while_the_server_cannot_be_reached() {
        let (result, pauses) = pauses(vec![Err(unreachable()), Err(unreachable()), Ok(())]);
        assert!(result.is_ok());
        assert_eq!(pauses, [RETRY, RETRY]);
    }

    #[test]
    fn connection_that_is_refused_is_not_repeated() {
        let (result, pauses) = pauses(vec![Err(unreachable()), Err(not_found("no such space"))]);
        assert_eq!(exit_of(&result.unwrap_err()), Exit::NotFound);
        assert_eq!(pauses, [RETRY]);
    }
}

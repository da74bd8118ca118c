//! The project's automation: `cargo xtask TASK`.
//!
//! - `serve` builds the server, fetches the embedding model and starts it.
//! - `test` installs what the tests need and runs them; `lint` checks form, structure and dependencies.
//! - `alone` checks that each crate compiles without the others, as a program that embeds it needs it.
//! - `build` and `install` build the executable under both of its names; `release` packs archives of it.
//! - `deploy` checks the files in `deploy` with the tools that they are written for; `deploy image` replays the Dockerfile.
//! - `book` builds the documentation as a book and checks its links.
//! - `model` fetches the default embedding model, or a published one by its name, into `models`.
//! - `files` scores the parsers on a folder of files with references.
//! - `fuzz` runs each fuzz target for a minute; `crash` kills a loaded server many times.
//! - `histories` records what several processes see of Redis, and clients of the whole service, while they are disturbed, and
//!   checks it.
//! - `several PART` tries several processes on Redis, Qdrant and an object store at full size.
//! - `console` tries the console in a browser: every page in every width, theme and language, or its speed.
//! - `clients` tries the server with real clients of other projects.
//! - `compare` runs the benchmarks of two commits in turn and tells what is slower.
//! - `arm` runs the tests of code for 64-bit ARM processors under emulation.
//! - `breaks` checks that tests catch the mistakes in `tests/breaks`.

#![expect(clippy::print_stderr, reason = "a person reads what the automation does")]

mod arm;
mod book;
mod breaks;
mod cargo_tool;
mod clients;
mod compare;
mod deploy;
mod direction;
mod docs;
mod executable;
mod files;
mod fuzz;
#[cfg(test)]
mod imports;
mod lint;
mod model;
mod release;
mod several;
mod test_run;
mod tools;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "usage: cargo xtask serve [FLAGS OF lkr-server] | test [ARGUMENTS OF cargo test] | lint | alone | book | \
                     build [--profile PROFILE] | install [ROOT] | release [--profile PROFILE] [TARGET…] | \
                     model [NAME [--revision REVISION] | FOLDER THAT HOLDS IT] | files [FOLDER] | fuzz [SECONDS] [TARGET] | crash [KILLS] | \
                     histories [SECONDS [redis | service]] | several PART | breaks [NAME] | clients [NAME…] | console [pages | speed] | \
                     compare BEFORE [AFTER] | arm | deploy [image [EXECUTABLE] [--build-arg NAME=VALUE]…]";

fn main() -> ExitCode {
    match run_task() {
        Ok(()) => ExitCode::SUCCESS,
        // A backtrace says nothing of a program that failed, and would bury what that printed.
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_task() -> Result<()> {
    let mut args = env::args_os().skip(1);
    let task = args.next().context(USAGE)?;
    let rest: Vec<OsString> = args.collect();
    match task.to_str() {
        Some("serve") => serve(&rest),
        Some("test") => test_run::test(&rest),
        Some("build") => executable::build(&rest),
        Some("install") => executable::install(&rest),
        Some("release") => release::pack(&rest),
        Some("lint") => lint::run_lints(),
        Some("alone") => lint::check_each_crate(),
        Some("book") => book::build(),
        Some("model") => model::get(&root()?.join("models"), &rest),
        Some("files") => files::score(rest.first().map(Path::new)),
        Some("fuzz") => fuzz::fuzz(&rest),
        Some("crash") => crash(&rest),
        Some("histories") => histories(&rest),
        Some("several") => several::run(&rest),
        Some("arm") => arm::check(),
        Some("clients") => clients::check(&rest),
        Some("compare") => compare::compare(&rest),
        Some("console") => console(rest.first().and_then(|what| what.to_str())),
        Some("deploy") => deploy::run_task(&rest),
        Some("breaks") => breaks::check_breaks(&rest),
        _ => bail!(USAGE),
    }
}

/// Builds the server, fetches the embedding model, and runs the server until it ends.
fn serve(flags: &[OsString]) -> Result<()> {
    let dir = executable::build_profile("release")?;
    let mut server = Command::new(dir.join("lkr-server"));
    server.args(flags);
    with_model(&mut server)?;
    run(server)
}

/// Kills a loaded server many times; the tests do it a few times.
fn crash(arguments: &[OsString]) -> Result<()> {
    let kills = arguments.first().and_then(|kills| kills.to_str()).unwrap_or("100");
    let test = ["test", "--workspace", "--test", "e2e", "--", "kill9", "--nocapture", "--test-threads=1"];
    let mut tests = cargo(&test)?;
    tests.env("CRASH_KILLS", kills);
    with_model(&mut tests)?;
    run(tests)
}

/// `cargo xtask histories [SECONDS [redis | service]]`: records and checks long histories of processes on Redis, and of servers and
/// workers on shared stores, and that broken variants of both are caught; the tests do it for some seconds.
fn histories(arguments: &[OsString]) -> Result<()> {
    let argument = |place: usize| arguments.get(place).and_then(|argument| argument.to_str());
    let seconds = argument(0).unwrap_or("300");
    let redis: &[&str] = &["--package", "lkr-state-redis", "--test", "history", "--"];
    let service: &[&str] = &["--workspace", "--test", "e2e", "--", "histories::", "--test-threads=1"];
    let chosen: &[&[&str]] = match argument(1) {
        None => &[redis, service],
        Some("redis") => &[redis],
        Some("service") => &[service],
        Some(other) => bail!("{other} is not redis or service"),
    };
    for which in chosen {
        let mut tests = cargo(&[&["test"], *which, &["--nocapture"]].concat())?;
        tests.env("LKR_HISTORY_SECONDS", seconds);
        tools::with_redis()?;
        tools::with_s3(&mut tests)?;
        run(tests)?;
    }
    Ok(())
}

/// `cargo xtask console [pages | speed]`: tries the console in a browser: its tests whole, all pages in every width, theme and
/// language (with screenshots in `target/console`), or its speed on a slowed processor.
fn console(what: Option<&str>) -> Result<()> {
    let filter = match what {
        None => "console::",
        Some("pages") => "console::pages",
        Some("speed") => "console::console_answers",
        Some(other) => bail!("{other} is not pages or speed"),
    };
    let test = ["test", "--workspace", "--test", "e2e", "--", filter, "--nocapture", "--test-threads=1"];
    let mut tests = cargo(&test)?;
    tests.env("LKR_CONSOLE_MATRIX", "all").env("LKR_CONSOLE_SHOTS", root()?.join("target/console"));
    if what == Some("speed") {
        tests.env("LKR_CONSOLE_SPEED", "1");
    }
    with_model(&mut tests)?;
    tools::with_tools(&mut tests)?;
    run(tests)
}

/// Sets `LKR_MODEL_DIR` for the server and the tests unless the caller has set it.
fn with_model(command: &mut Command) -> Result<()> {
    if env::var_os("LKR_MODEL_DIR").is_none() {
        let dir = model_dir()?;
        match model::ensure(&dir, None) {
            Ok(()) => {
                command.env("LKR_MODEL_DIR", dir);
            }
            Err(error) => eprintln!("no embedding model; searching by keywords alone: {error:#}"),
        }
    }
    Ok(())
}

fn model_dir() -> Result<PathBuf> {
    Ok(root()?.join("models").join(model::DEFAULT))
}

fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("no workspace root")?.to_owned())
}

fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(root()?);
    // Variables that cargo sets for this program would make build scripts run again.
    for (variable, _) in env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CARGO_PKG_")) {
        cargo.env_remove(variable);
    }
    cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    Ok(cargo)
}

fn run(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} failed: {status}");
    Ok(())
}

/// Runs a command, and shows its output only if it fails.
fn quietly(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {program}; is it installed?"))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{program} failed: {}: {}", output.status, stderr.trim());
    }
    Ok(())
}

/// Runs a command that downloads, like [`quietly`]. In CI, where nobody would run it again, it is tried again after pauses
/// if it fails: a package index or a mirror may be away for a moment.
fn downloading(command: &mut Command) -> Result<()> {
    let pauses: &[u64] = if env::var_os("CI").is_some() { &[5, 30, 60] } else { &[] };
    let pauses: Vec<Duration> = pauses.iter().copied().map(Duration::from_secs).collect();
    repeated(|| quietly(command), &pauses)
}

/// The first success, or the last error, of one try and one more after each pause.
fn repeated(mut attempt: impl FnMut() -> Result<()>, pauses: &[Duration]) -> Result<()> {
    for pause in pauses {
        match attempt() {
            Ok(()) => return Ok(()),
            Err(error) => eprintln!("again in {pause:?}: {error:#}"),
        }
        thread::sleep(*pause);
    }
    attempt()
}

/// A temporary folder beside `dest`, on the same file system, so that it can be renamed to `dest`.
fn partial_sibling(dest: &Path) -> Result<PathBuf> {
    let name = dest.file_name().with_context(|| format!("{} names no folder", dest.display()))?;
    let mut partial = OsStr::new(".").to_owned();
    partial.push(name);
    partial.push(".partial");
    Ok(dest.with_file_name(partial))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .with_context(|| format!("cannot list {}", folder.display()))
}

fn remove_dir(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_download_is_tried_again() {
        let mut attempts = 0;
        let result = repeated(
            || {
                attempts += 1;
                ensure!(attempts == 3, "attempt {attempts} failed");
                Ok(())
            },
            &[Duration::ZERO; 3],
        );
        assert!(result.is_ok());
        assert_eq!(attempts, 3, "a success is not repeated");

        let mut attempts = 0;
        let failing = || {
            attempts += 1;
            bail!("attempt {attempts} failed")
        };
        let error = repeated(failing, &[Duration::ZERO; 2]).map_err(|error| error.to_string());
        assert_eq!(error, Err("attempt 3 failed".to_owned()));
    }
}

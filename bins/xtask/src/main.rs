//! The project's automation. `cargo xtask serve` sets up and runs the service, `cargo xtask test` sets up and
//! passes the tests, `cargo xtask lint` checks form and structure.

#![expect(clippy::print_stderr, reason = "a person reads what the automation does")]

mod direction;
mod lint;
mod model;

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

const USAGE: &str = "usage: cargo xtask serve [FLAGS OF lkr-server] | test [ARGUMENTS OF cargo test] | lint | \
                     model [FOLDER THAT HOLDS IT]";

fn main() -> Result<()> {
    let mut args = env::args_os().skip(1);
    let task = args.next().context(USAGE)?;
    let rest: Vec<OsString> = args.collect();
    match task.to_str() {
        Some("serve") => serve(&rest),
        Some("test") => test(&rest),
        Some("lint") => lint::run_lints(),
        Some("model") => model::ensure(&model_dir()?, rest.first().map(Path::new)),
        _ => bail!(USAGE),
    }
}

/// Builds the service, fetches the model, and becomes the service.
fn serve(flags: &[OsString]) -> Result<()> {
    run(cargo(&["build", "--release", "--package", "lkr-server"])?)?;
    let mut server = Command::new(root()?.join("target/release/lkr-server"));
    server.args(flags);
    with_model(&mut server)?;
    run(server)
}

fn test(arguments: &[OsString]) -> Result<()> {
    let mut tests = cargo(&["test", "--workspace", "--no-fail-fast"])?;
    tests.args(arguments);
    with_model(&mut tests)?;
    run(tests)?;
    if arguments.is_empty() {
        // A program outside the workspace that embeds the retrieval alone; it shares what was built.
        let root = root()?;
        let manifest = root.join("tests/embed-retrieval/Cargo.toml");
        let mut program = cargo(&["run", "--quiet", "--locked", "--manifest-path"])?;
        program.arg(manifest).env("CARGO_TARGET_DIR", root.join("target"));
        run(program)?;
    }
    Ok(())
}

/// Names the model to the service and the tests, unless the caller names another.
fn with_model(command: &mut Command) -> Result<()> {
    if env::var_os("LKR_MODEL_DIR").is_none() {
        let dir = model_dir()?;
        match model::ensure(&dir, None) {
            Ok(()) => {
                command.env("LKR_MODEL_DIR", dir);
            }
            Err(error) => eprintln!("no embedding model, so searches go by words alone: {error:#}"),
        }
    }
    Ok(())
}

fn model_dir() -> Result<PathBuf> {
    Ok(root()?.join("models/all-MiniLM-L6-v2"))
}

fn root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    Ok(root.context("no workspace root")?.to_owned())
}

fn cargo(arguments: &[&str]) -> Result<Command> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments).current_dir(root()?);
    Ok(cargo)
}

fn run(mut command: Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}

//! Form and structure: formatting, clippy, documentation, licences, the direction of dependencies.

use std::{env, path::PathBuf, process::Command};

use anyhow::Result;

use crate::{cargo, direction, root, run};

/// The checker of licences and sources.
const DENY: &str = "cargo-deny";
const DENY_VERSION: &str = "0.20.2";

pub(crate) fn run_lints() -> Result<()> {
    run(cargo(&["fmt", "--all", "--check"])?)?;
    direction::check()?;
    run(cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?)?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"])?;
    doc.env("RUSTDOCFLAGS", "--deny warnings");
    run(doc)?;
    deny()
}

/// Checks licences and sources. Where the checker cannot be had that is a visible skip, and a failure in CI.
fn deny() -> Result<()> {
    match deny_binary() {
        Ok(binary) => {
            let mut deny = Command::new(binary);
            deny.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]);
            deny.current_dir(root()?);
            run(deny)
        }
        Err(error) if env::var_os("CI").is_none() => {
            eprintln!("skipped: licences and sources, as {DENY} cannot be had: {error:#}");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// The checker, built once without its network part and without optimisation.
fn deny_binary() -> Result<PathBuf> {
    let tools = root()?.join("target/tools");
    let binary = tools.join("bin/cargo-deny");
    if !binary.is_file() {
        let mut install = cargo(&["install", DENY, "--version", DENY_VERSION, "--quiet"])?;
        install.args(["--locked", "--debug", "--no-default-features", "--root"]).arg(&tools);
        run(install)?;
    }
    Ok(binary)
}

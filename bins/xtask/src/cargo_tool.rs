//! Programs of the registry that the automation uses.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::{cargo, root, run};

/// A program of the registry, installed below `target/tools`.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// Further arguments of `cargo install`.
    pub(crate) arguments: &'static [&'static str],
}

impl Tool {
    /// The program, installed once without optimisation; `None` if it cannot be installed, which is a visible skip, and
    /// an error in CI. `what` is what the program checks.
    pub(crate) fn binary_or_skip(&self, what: &str) -> Result<Option<PathBuf>> {
        match self.binary() {
            Ok(binary) => Ok(Some(binary)),
            Err(error) if env::var_os("CI").is_none() => {
                eprintln!("skipped: {what}: {error:#}");
                Ok(None)
            }
            Err(error) => Err(error.context(format!("cannot check {what}"))),
        }
    }

    /// The program, installed once without optimisation.
    pub(crate) fn binary(&self) -> Result<PathBuf> {
        let tools = root()?.join("target/tools");
        let binary = tools.join("bin").join(Path::new(self.name));
        if !binary.is_file() {
            let mut install = cargo(&["install", self.name, "--version", self.version, "--quiet"])?;
            install.args(["--locked", "--debug"]).args(self.arguments).arg("--root").arg(&tools);
            // Nobody looks for faults in it, and debug information takes time.
            install.env("CARGO_PROFILE_DEV_DEBUG", "false");
            // What two tools need is compiled once.
            install.env("CARGO_TARGET_DIR", tools.join("build"));
            run(install)?;
        }
        Ok(binary)
    }
}

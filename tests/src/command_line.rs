//! The program `lkr` on the command line.

use std::{
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, cli_binary};

/// The command line, with a folder of its own for what it keeps and no variables of the caller's environment.
#[derive(Debug)]
pub struct CommandLine {
    home: TempDir,
    environment: Vec<(&'static str, String)>,
}

impl CommandLine {
    /// One that knows no server.
    ///
    /// # Panics
    /// If the system gives it no folder.
    #[must_use]
    pub fn alone() -> Self {
        Self { home: tempfile::tempdir().expect("a folder"), environment: Vec::new() }
    }

    /// One that is the account `admin` of a server.
    #[must_use]
    pub fn on(server: &Server) -> Self {
        Self::with_token(server, server.admin())
    }

    /// One that has a credential of a server.
    #[must_use]
    pub fn with_token(server: &Server, token: &str) -> Self {
        let mut lkr = Self::alone();
        lkr.environment.push(("LKR_URL", server.url()));
        lkr.environment.push(("LKR_TOKEN", token.to_owned()));
        lkr
    }

    /// Its working folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.home.path()
    }

    /// A path in its working folder.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The command with these arguments, its outputs captured.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cli_binary());
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("LKR_")) {
            command.env_remove(name);
        }
        command
            .args(arguments)
            .current_dir(self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path().join("config"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it.
    ///
    /// # Panics
    /// If it cannot be started.
    #[must_use]
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the command line runs")
    }

    /// Runs it with an input.
    ///
    /// # Panics
    /// If it cannot be started or does not read its input.
    #[must_use]
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().expect("the command line runs");
        let mut stdin = child.stdin.take().expect("an input");
        stdin.write_all(input.as_bytes()).expect("it reads its input");
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// Runs it, and returns what it printed.
    ///
    /// # Panics
    /// If it fails.
    #[must_use]
    pub fn print(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "lkr {arguments:?}: {}", printed(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    /// Runs it with `--json`, and returns the objects that it printed.
    ///
    /// # Panics
    /// If it fails or prints something else.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.print(&[arguments, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// Everything that a command printed.
#[must_use]
pub fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

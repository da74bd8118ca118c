//! What the executable gives the command line: the server, which this crate does not depend on.

use std::{ffi::OsString, path::PathBuf, pin::Pin, process::ExitCode};

use anyhow::Result;
use lkr::ConfiguredStores;

/// The server, in two forms.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    /// Runs the HTTP service with a command line, the program's name first.
    pub serve: fn(Vec<OsString>) -> ExitCode,
    /// Starts a server in this process with these flags, for the commands on a data folder.
    pub open: fn(Vec<OsString>) -> Result<Box<dyn LocalServer>>,
    /// The flags of the HTTP service, for help and completions.
    pub flags: fn() -> clap::Command,
    /// Opens the stores of a configuration file, or those that a server in this process would have.
    pub stores: fn(Option<PathBuf>) -> OpeningStores,
}

/// Stores that are being opened. The future must run in a runtime that lives as long as they do.
pub type OpeningStores = Pin<Box<dyn Future<Output = Result<ConfiguredStores>>>>;

/// A server in this process, which admits this process alone.
pub trait LocalServer {
    /// Its base URL.
    fn url(&self) -> String;

    /// The token that it admits.
    fn token(&self) -> &str;

    /// Stops it, and waits until it has ended.
    ///
    /// # Errors
    /// Why the server failed.
    fn stop(self: Box<Self>) -> Result<()>;
}

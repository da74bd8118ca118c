//! The server for the command line.

use std::{ffi::OsString, path::PathBuf};

use lkr_cli::{LocalServer, OpeningStores, Program};

/// The server that the command line starts.
pub(crate) const PROGRAM: Program =
    Program { serve: lkr_server::main, open, flags: lkr_server::config::command, stores };

/// A server in this process.
struct InProcess(lkr_server::LocalServer);

impl LocalServer for InProcess {
    fn url(&self) -> String {
        self.0.url()
    }

    fn token(&self) -> &str {
        self.0.token()
    }

    fn stop(self: Box<Self>) -> anyhow::Result<()> {
        self.0.stop()
    }
}

fn stores(file: Option<PathBuf>) -> OpeningStores {
    Box::pin(lkr_server::open_configured(file))
}

fn open(flags: Vec<OsString>) -> anyhow::Result<Box<dyn LocalServer>> {
    Ok(Box::new(InProcess(lkr_server::LocalServer::start(flags)?)))
}

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Result;
use lkr::has_knowledge_base;

use crate::{
    connection::Login,
    exit::not_found,
    http::Client,
    program::{LocalServer, Program},
};

/// A server, or a data folder.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TargetArgs {
    #[command(flatten)]
    login: Login,
    /// Work on this data folder, which no server may have open, instead of on a server.
    #[arg(long, value_name = "FOLDER", global = true, conflicts_with_all = ["server", "token", "password_file"])]
    data_dir: Option<PathBuf>,
}

/// An open connection. Dropping it leaves a server in this process to end with the process; `close` ends it in order.
pub(crate) struct Connection {
    pub(crate) client: Client,
    local: Option<Box<dyn LocalServer>>,
}

/// What a command does if there is no knowledge base in the data folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Missing {
    Create,
    Refuse,
}

impl TargetArgs {
    /// Whether the command works on a data folder.
    pub(crate) const fn names_folder(&self) -> bool {
        self.data_dir.is_some()
    }

    /// Connects with a credential, if one is given anywhere. A data folder must contain a knowledge base.
    pub(crate) fn connect(&self, program: &Program) -> Result<Connection> {
        self.open(program, Missing::Refuse, Login::client)
    }

    /// Connects with a credential, which the command needs. A data folder must contain a knowledge base.
    pub(crate) fn log_in(&self, program: &Program) -> Result<Connection> {
        self.open(program, Missing::Refuse, Login::log_in)
    }

    /// Connects with a credential, which the command needs. A data folder without a knowledge base gets one.
    pub(crate) fn log_in_or_create(&self, program: &Program) -> Result<Connection> {
        self.open(program, Missing::Create, Login::log_in)
    }

    /// What identifies the target, for state that belongs to it.
    pub(crate) fn name(&self) -> Result<String> {
        match &self.data_dir {
            Some(folder) => Ok(format!("folder {}", std::path::absolute(folder)?.display())),
            None => self.login.address(),
        }
    }

    fn open(
        &self,
        program: &Program,
        missing: Missing,
        client: fn(&Login) -> Result<Client>,
    ) -> Result<Connection> {
        let Some(folder) = &self.data_dir else {
            return Ok(Connection { client: client(&self.login)?, local: None });
        };
        check(folder, missing)?;
        let flags = vec![OsString::from("--data-dir"), folder.clone().into_os_string()];
        let local = (program.open)(flags)?;
        let client = Client::new(&local.url()).with_bearer(local.token());
        Ok(Connection { client, local: Some(local) })
    }
}

/// Refuses a folder without a knowledge base, unless one may be made there: in a new or an empty folder.
fn check(folder: &Path, missing: Missing) -> Result<()> {
    let shown = folder.display();
    if has_knowledge_base(folder)? {
        return Ok(());
    }
    if missing == Missing::Refuse {
        return Err(not_found(format!(
            "{shown} contains no knowledge base; 'lkr add --data-dir {shown}' makes one"
        )));
    }
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(not_found(format!(
            "{shown} contains no knowledge base, and is not empty; name a new folder"
        )));
    }
    Ok(())
}

impl Connection {
    /// Ends a server in this process in order: what it accepted is stored, and its last writes are done.
    pub(crate) fn close(self) -> Result<()> {
        let Self { client, local } = self;
        // Its idle connections would delay the end of the server.
        drop(client);
        local.map_or(Ok(()), LocalServer::stop)
    }
}

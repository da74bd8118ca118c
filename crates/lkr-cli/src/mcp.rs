//! `lkr mcp`: the Model Context Protocol on standard input and output.

mod folder;
mod headers;
mod relay;

use std::{env, path::PathBuf, process::ExitCode};

use anyhow::{Result, bail};

use crate::{
    folders::FolderArgs,
    http::{Client, Login},
};

/// The variable with an access token or API key. Programs that start this one set variables rather than flags, which other
/// accounts of the machine can read.
const TOKEN: &str = "LKR_TOKEN";

/// The arguments of `lkr mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    login: Login,
    #[command(flatten)]
    folders: FolderArgs,
    /// Without a server: use this embedding model instead of LKR_MODEL_DIR or <data-dir>/models/default.
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Without a server: add no documents.
    #[arg(long)]
    read_only: bool,
}

/// Serves until the input ends: with `--server` what that server offers to the account or API key, otherwise the knowledge base
/// in the data folder.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.login.names_server() {
        if args.read_only || args.model.is_some() {
            bail!(
                "--model and --read-only are for a data folder; with --server use an API key that may only read"
            );
        }
        relay::run(&client(&args.login)?)?;
    } else {
        if args.login.can_log_in() {
            bail!("an account or a token needs --server");
        }
        folder::run(args.folders.find()?, args.model.clone(), args.read_only)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A client with the given credential, or with the one of the environment, or without any.
fn client(login: &Login) -> Result<Client> {
    if login.can_log_in() {
        return login.log_in();
    }
    Ok(match env::var(TOKEN) {
        Ok(token) if !token.is_empty() => login.anonymous().with_bearer(&token),
        _ => login.anonymous(),
    })
}

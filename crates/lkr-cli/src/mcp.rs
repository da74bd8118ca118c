//! `lkr mcp`: the Model Context Protocol on standard input and output.

mod folder;
mod headers;
mod relay;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;

use crate::{connection::Login, exit::usage, folders::FolderArgs};

/// The arguments of `lkr mcp`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    folders: FolderArgs,
    /// Without a server: use this embedding model instead of LKR_MODEL_DIR or <data-dir>/models/default.
    #[arg(long, value_name = "FOLDER")]
    model: Option<PathBuf>,
    /// Without a server: add no documents.
    #[arg(long)]
    read_only: bool,
    #[command(flatten)]
    login: Login,
}

/// Serves until the input ends: what a server offers to the account or API key if one is named, otherwise the knowledge base in
/// the data folder.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let has_folder_flag = args.folders.has_flag() || args.model.is_some() || args.read_only;
    if has_folder_flag && args.login.has_server_flag() {
        return Err(usage(
            "--model, --read-only and folders are for a data folder; with --server use an API key that may only read",
        ));
    }
    if !has_folder_flag && args.login.names_server()? {
        relay::run(&args.login.client()?)?;
    } else {
        if args.login.has_credential_flag() {
            return Err(usage("an account or a token needs --server"));
        }
        folder::run(args.folders.find_embedded("use --server")?, args.model.clone(), args.read_only)?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::exit::{Exit, exit_of};

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn flags_of_a_server_and_of_a_folder_are_a_usage_error() {
        for flags in [
            &["--server", "http://127.0.0.1:9", "--data-dir", "a"][..],
            &["--server", "http://127.0.0.1:9", "--read-only"],
            &["--data-dir", "a", "--token", "lkr_x"],
        ] {
            let line = Line::try_parse_from([&["mcp"], flags].concat()).unwrap();
            assert_eq!(exit_of(&run(&line.args).unwrap_err()), Exit::Usage, "{flags:?}");
        }
    }
}

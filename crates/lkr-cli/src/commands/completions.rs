//! `lkr completions` and `lkr man`.

use std::{fs, io::Write, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::commands::reference::markdown;

/// The arguments of `lkr completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "bash:  lkr completions bash > ~/.local/share/bash-completion/completions/lkr\n\
                        zsh:   lkr completions zsh > \"${fpath[1]}/_lkr\"\n\
                        fish:  lkr completions fish > ~/.config/fish/completions/lkr.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// The arguments of `lkr man`.
#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Write a page for each command to this folder. [default: print the page of lkr]
    #[arg(long, value_name = "FOLDER", conflicts_with = "markdown")]
    out: Option<PathBuf>,
    /// Print the reference of all commands in Markdown.
    #[arg(long)]
    markdown: bool,
}

/// Prints the completions of a command line for a shell.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "lkr", &mut script);
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints or writes the manual pages of a command line.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    if args.markdown {
        std::io::stdout().write_all(markdown(&command).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(folder) = &args.out else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        std::io::stdout().write_all(&page)?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    clap_mangen::generate_to(command, folder).with_context(|| format!("write to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

//! `lkr completions` and `lkr man`.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use clap_mangen::{
    Man,
    roff::{Roff, roman},
};

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
    if args.shell == Shell::Fish {
        script.extend(fish_values(&command).bytes());
    }
    std::io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// The values of arguments without a flag, such as roles, which the generated script for fish lacks.
fn fish_values(command: &Command) -> String {
    let mut lines = String::new();
    for outer in command.get_subcommands() {
        let is_used = format!("__fish_lkr_using_subcommand {}", outer.get_name());
        lines.extend(fish_lines(outer, &is_used));
        for inner in outer.get_subcommands() {
            let condition = format!("{is_used}; and __fish_seen_subcommand_from {}", inner.get_name());
            lines.extend(fish_lines(inner, &condition));
        }
    }
    lines
}

fn fish_lines(command: &Command, condition: &str) -> impl Iterator<Item = String> {
    command.get_positionals().filter_map(move |argument| {
        let values = argument.get_possible_values();
        let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
        (!names.is_empty())
            .then(|| format!("complete -c lkr -n \"{condition}\" -f -a \"{}\"\n", names.join(" ")))
    })
}

/// Prints or writes the manual pages of a command line.
pub(crate) fn man(args: &ManArgs, command: Command) -> Result<ExitCode> {
    if args.markdown {
        std::io::stdout().write_all(markdown(&command).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(folder) = &args.out else {
        std::io::stdout().write_all(&page(&command)?)?;
        return Ok(ExitCode::SUCCESS);
    };
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_pages(&command, folder).with_context(|| format!("write to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and those of its own commands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    let mut visible = command.get_subcommands().filter(|command| !command.is_hide_set());
    visible.try_for_each(|command| write_pages(command, folder))?;
    fs::write(folder.join(Man::new(command.clone()).get_filename()), page(command)?)
}

/// The manual page of a command. What its help says at the end are notes, whose lines stay as they are.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    Man::new(command.clone().after_help(None::<&str>)).render(&mut page)?;
    if let Some(notes) = command.get_after_help() {
        let mut roff = Roff::new();
        roff.control("SH", ["NOTES"]).control("nf", []);
        for line in notes.to_string().lines() {
            roff.text([roman(line)]);
        }
        roff.control("fi", []).to_writer(&mut page)?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fish_completes_the_values_of_arguments_without_a_flag() {
        use clap::CommandFactory as _;
        let lines = fish_values(&crate::Cli::command());
        let role = "complete -c lkr -n \"__fish_lkr_using_subcommand spaces; and __fish_seen_subcommand_from grant\" \
                    -f -a \"reader writer manager\"\n";
        assert!(lines.contains(role), "{lines}");
        assert!(lines.contains("__fish_lkr_using_subcommand completions\" -f -a \"bash "), "{lines}");
    }

    #[test]
    fn lines_of_notes_are_kept_in_a_manual_page() {
        let command = Command::new("lkr").about("Search.").after_help("bash:  a\nzsh:   b");
        let page = String::from_utf8(page(&command).unwrap()).unwrap();
        let (before, notes) = page.split_once(".SH NOTES\n").unwrap();
        assert!(before.contains(".SH NAME") && !before.contains("bash"), "{page}");
        assert_eq!(notes, ".nf\nbash:  a\nzsh:   b\n.fi\n");
        assert!(!page.contains("EXTRA"), "{page}");
    }
}

//! The commands as a Markdown page: docs/cli.md.

use clap::{Arg, Command};

/// The groups of flags that many commands have; the page describes them once.
const SHARED: [&str; 2] = ["Server and account", "Output"];

/// A section for each command, and for each of its own commands. The flags of `SHARED` are not repeated.
pub(crate) fn markdown(command: &Command) -> String {
    let mut command = command.clone();
    command.build();
    let mut text = String::new();
    for subcommand in visible(&command) {
        section(subcommand, 2, &mut text);
    }
    text
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn section(command: &Command, level: usize, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    let about = sentence(&escaped(&about.unwrap_or_default()));
    *text += &format!("{} {name}\n\n{about}\n\n    {usage}\n\n", "#".repeat(level));
    let aliases: Vec<String> = command.get_all_aliases().map(|alias| format!("`{alias}`")).collect();
    if !aliases.is_empty() {
        *text += &format!("Another name: {}.\n\n", aliases.join(", "));
    }
    let is_own = |arg: &&Arg| {
        let heading = arg.get_help_heading().unwrap_or_default();
        !arg.is_hide_set()
            && !SHARED.contains(&heading)
            && !matches!(arg.get_id().as_str(), "help" | "version")
    };
    let rows: Vec<String> = command.get_arguments().filter(is_own).map(row).collect();
    if !rows.is_empty() {
        *text += &format!("| argument | meaning |\n|---|---|\n{}\n", rows.concat());
    }
    for subcommand in visible(command) {
        section(subcommand, level + 1, text);
    }
}

fn row(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default().first().map(ToString::to_string);
    let value = value.filter(|_| arg.get_num_args().is_none_or(|range| range.takes_values()));
    let flag = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => String::new(),
    };
    let name = match (flag.is_empty(), value) {
        (true, value) => value.unwrap_or_else(|| arg.get_id().to_string().to_uppercase()),
        (false, Some(value)) => format!("{flag} {value}"),
        (false, None) => flag,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default().replace('\n', " ");
    format!("| `{name}` | {}{} |\n", sentence(&escaped(&help)), choices(arg))
}

/// The values that are allowed, and the default.
fn choices(arg: &Arg) -> String {
    if arg.get_action().takes_values() {
        let values = arg.get_possible_values();
        let values: Vec<String> = values
            .iter()
            .filter(|value| !value.is_hide_set())
            .map(|value| format!("`{}`", value.get_name()))
            .collect();
        let defaults: Vec<String> =
            arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
        let mut text = String::new();
        if !values.is_empty() {
            text += &format!(" One of {}.", values.join(", "));
        }
        if !defaults.is_empty() && !arg.is_hide_default_value_set() {
            text += &format!(" Default: {}.", defaults.join(", "));
        }
        return text;
    }
    String::new()
}

/// A text with a full stop at its end, which help texts lack.
fn sentence(text: &str) -> String {
    if text.is_empty() || text.ends_with(['.', ']', ')']) { text.to_owned() } else { format!("{text}.") }
}

/// Text in which no part looks like an HTML element or the end of a cell.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_a_section_with_their_own_arguments() {
        let shared = Arg::new("server").long("server").help_heading("Server and account");
        let own = Arg::new("mode")
            .long("mode")
            .short('m')
            .value_name("MODE")
            .help("How <it> is done.")
            .value_parser(["a", "b"]);
        let inner =
            Command::new("rm").about("Remove.").arg(Arg::new("name").value_name("NAME").required(true));
        let outer = Command::new("things").about("Things.").args([shared, own]).subcommand(inner);
        let text = markdown(&Command::new("lkr").subcommand(outer));
        for part in [
            "## lkr things\n\nThings.\n\n    lkr things [OPTIONS] [COMMAND]\n\n",
            "| `-m, --mode MODE` | How &lt;it> is done. One of `a`, `b`. |\n",
            "### lkr things rm\n\nRemove.\n\n    lkr things rm <NAME>\n\n| argument | meaning |\n|---|---|\n| `NAME` |  |\n",
        ] {
            assert!(text.contains(part), "{part}\n---\n{text}");
        }
        assert!(!text.contains("--server"), "{text}");
    }
}

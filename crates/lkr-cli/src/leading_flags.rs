//! Flags that stand before the command: `lkr --json ls` is `lkr ls --json`.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Args as _, Command};

use crate::commands::Common;

/// Moves the flags that most commands share from before a command of `program` to behind it, where the command accepts or
/// refuses them. Other arguments keep their places.
pub(crate) fn behind_command(
    program: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let shared = Common::augment_args(Command::new("lkr"));
    let mut rest = arguments.into_iter().peekable();
    let mut line: Vec<OsString> = rest.next().into_iter().collect();
    let mut flags = Vec::new();
    while let Some(argument) = rest.next() {
        let Some(flag) = shared.get_arguments().find(|flag| is_named(flag, &argument)) else {
            let command = program.find_subcommand(&argument);
            line.push(argument);
            // A command of a command has the flags too, and some commands have none before it.
            line.extend(rest.next_if(|next| command.is_some_and(|it| it.find_subcommand(next).is_some())));
            break;
        };
        let value_follows = flag.get_action().takes_values() && !argument.as_encoded_bytes().contains(&b'=');
        flags.push(argument);
        if value_follows {
            flags.extend(rest.next());
        }
    }
    line.extend(flags);
    line.extend(rest);
    line
}

/// Whether an argument is a flag, with or without a value in it.
fn is_named(flag: &Arg, argument: &OsStr) -> bool {
    let text = argument.to_string_lossy();
    let name = text.split('=').next().unwrap_or_default();
    let long = name.strip_prefix("--").is_some_and(|name| flag.get_long() == Some(name));
    let short = name.strip_prefix('-').is_some_and(|name| {
        let mut letters = name.chars();
        flag.get_short().is_some() && letters.next() == flag.get_short() && letters.next().is_none()
    });
    long || short
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::Cli;

    fn moved(line: &str) -> String {
        let moved = behind_command(&Cli::command(), line.split(' ').map(OsString::from));
        moved.iter().map(|argument| argument.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn shared_flags_are_moved_behind_the_command() {
        assert_eq!(moved("lkr --json ls"), "lkr ls --json");
        assert_eq!(
            moved("lkr --server http://h:1 -q spaces members sea"),
            "lkr spaces members --server http://h:1 -q sea"
        );
        assert_eq!(moved("lkr --data-dir=kb search x --json"), "lkr search --data-dir=kb x --json");
    }

    #[test]
    fn other_arguments_keep_their_places() {
        for line in ["lkr", "lkr ls --json", "lkr --help", "lkr --nope ls", "lkr search -- --json"] {
            assert_eq!(moved(line), line);
        }
        assert_eq!(moved("lkr --json spaces nope"), "lkr spaces --json nope");
        assert_eq!(moved("lkr --token"), "lkr --token");
        assert_eq!(moved("lkr --json --help"), "lkr --help --json");
    }
}

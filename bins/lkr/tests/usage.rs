//! The help and the errors of the command line.

#![expect(clippy::expect_used, reason = "a failing test panics")]

use std::{
    env, fs,
    path::Path,
    process::{Command, Output},
};

fn lkr(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lkr")).args(arguments).output().expect("the command line runs")
}

#[test]
fn help_names_every_command() {
    let output = lkr(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for command in ["serve", "login", "add", "sync", "search", "eval", "parse", "bench", "doctor"] {
        assert!(help.contains(command), "{command} is not in {help}");
    }
}

#[test]
fn unknown_command_is_refused_by_name() {
    let output = lkr(&["inject"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("inject"));
}

/// Compares docs/cli.md with the program, or rewrites it if `UPDATE_DOCS` is set.
#[test]
fn reference_of_the_command_line_lists_every_command() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let page = fs::read_to_string(&path).expect("the page");
    let (head, rest) = page.split_once("<!-- commands: ").expect("the begin of the generated part");
    let (comment, rest) = rest.split_once("-->\n").expect("the end of the comment");
    let (_, tail) = rest.split_once("<!-- end of commands -->").expect("the end of the generated part");
    let commands = String::from_utf8(lkr(&["man", "--markdown"]).stdout).expect("UTF-8");
    let expected = format!("{head}<!-- commands: {comment}-->\n{commands}<!-- end of commands -->{tail}");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &expected).expect("the page can be written");
    }
    let command = "UPDATE_DOCS=1 cargo test --workspace --test usage";
    assert!(fs::read_to_string(&path).expect("the page") == expected, "rewrite docs/cli.md by {command}");
}

//! The help and the errors of the command line.

#![expect(clippy::expect_used, reason = "a failing test panics")]

use std::process::{Command, Output};

fn lkr(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lkr")).args(arguments).output().expect("the command line runs")
}

#[test]
fn help_names_every_command() {
    let output = lkr(&["--help"]);
    let help = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success());
    for command in ["ingest", "eval", "parse", "bench", "doctor"] {
        assert!(help.contains(command), "{command} is not in {help}");
    }
}

#[test]
fn unknown_command_is_refused_by_name() {
    let output = lkr(&["inject"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("inject"));
}

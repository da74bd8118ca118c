//! A command whose output is kept, and what of it tells which tests failed, and why.

use std::{
    io::{self, Read, Write},
    process::Command,
    thread,
};

use anyhow::{Result, anyhow};

use crate::run;

/// How a command ended, and what it printed: standard output and errors in their order.
pub(super) struct Captured {
    pub(super) output: Vec<u8>,
    pub(super) result: Result<()>,
}

impl Captured {
    /// Runs a command, and writes its output to `shown` as it comes.
    ///
    /// # Errors
    ///
    /// If the output cannot be read or shown. That the command fails is no error of this function.
    pub(super) fn of(mut command: Command, shown: impl Write + Send) -> Result<Self> {
        let (reader, writer) = io::pipe()?;
        command.stdout(writer.try_clone()?).stderr(writer);
        thread::scope(|scope| {
            let reading = scope.spawn(|| copy(reader, shown));
            // It takes the command, so that the pipe ends with it.
            let result = run(command);
            let output = reading.join().map_err(|_| anyhow!("reading the output panicked"))??;
            Ok(Self { output, result })
        })
    }

    /// What the output says of failed tests, and the last errors of cargo.
    pub(super) fn failures(&self) -> String {
        let output = String::from_utf8_lossy(&self.output);
        let mut lines = messages(&output);
        lines.extend(last_errors(&output));
        lines.join("\n")
    }
}

/// Everything that `reader` yields, written to `shown` meanwhile.
fn copy(mut reader: impl Read, mut shown: impl Write) -> io::Result<Vec<u8>> {
    let mut output = Vec::new();
    let mut buffer = [0; 8192];
    loop {
        let read = reader.read(&mut buffer)?;
        let part = buffer.get(..read).unwrap_or_default();
        if part.is_empty() {
            return Ok(output);
        }
        shown.write_all(part)?;
        output.extend_from_slice(part);
    }
}

/// The lines between "failures:" and "test result:" of each program. Of a backtrace, only the places in files of this workspace.
fn messages(output: &str) -> Vec<&str> {
    let (mut failures, mut backtrace) = (false, false);
    let mut messages = Vec::new();
    for line in output.lines() {
        if line == "failures:" {
            failures = true;
        } else if line.eq_ignore_ascii_case("stack backtrace:") {
            backtrace = true;
        } else if line.is_empty() || line.starts_with("---- ") || line.starts_with("note: ") {
            backtrace = false;
        }
        if failures && (!backtrace || line.trim_start().starts_with("at ./")) {
            messages.push(line);
        }
        failures &= !line.starts_with("test result:");
    }
    messages
}

/// The last line that begins with "error", and all behind it. A program that a signal ended has no other message.
fn last_errors(output: &str) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().collect();
    let error = |line: &&str| line.starts_with("error") || line.starts_with("Error");
    let first = lines.iter().rposition(error).unwrap_or(lines.len().saturating_sub(20));
    lines.get(first..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cargo;

    #[test]
    fn captured_command_returns_its_output_and_whether_it_succeeded() {
        let mut shown = Vec::new();
        let captured = Captured::of(cargo(&["--version"]).unwrap(), &mut shown).unwrap();
        assert!(captured.result.is_ok() && captured.output.starts_with(b"cargo "));
        assert_eq!(captured.output, shown);
        let captured = Captured::of(cargo(&["--no-such-flag"]).unwrap(), io::sink()).unwrap();
        assert!(captured.result.is_err());
        assert!(captured.failures().starts_with("error: "), "{}", captured.failures());
    }

    #[test]
    fn failures_are_messages_without_foreign_frames_and_the_last_errors() {
        let output = "\
running 3 tests
test one ... ok
test two ... FAILED

failures:

---- two stdout ----
thread 'two' panicked at crates/a/src/lib.rs:1:2:
left is not right
stack backtrace:
   0: panic
             at /rustc/library/std/src/panicking.rs:689:5
   1: two
             at ./src/lib.rs:3:4
note: Some details are omitted

failures:
    two

test result: FAILED. 1 passed; 1 failed
error: test failed, to rerun pass `-p a --lib`
running 1 test
test three ... ok

test result: ok. 1 passed; 0 failed
error: 1 target failed:
    `-p a --lib`
";
        let captured = Captured { output: output.into(), result: Ok(()) };
        assert_eq!(
            captured.failures(),
            "\
failures:

---- two stdout ----
thread 'two' panicked at crates/a/src/lib.rs:1:2:
left is not right
             at ./src/lib.rs:3:4
note: Some details are omitted

failures:
    two

test result: FAILED. 1 passed; 1 failed
error: 1 target failed:
    `-p a --lib`"
        );
    }

    #[test]
    fn failures_of_an_output_without_errors_are_its_end() {
        let output: String = (0..30).map(|line| format!("{line}\n")).collect();
        let captured = Captured { output: output.into(), result: Ok(()) };
        assert!(captured.failures().starts_with("10\n11\n") && captured.failures().ends_with("\n29"));
    }
}

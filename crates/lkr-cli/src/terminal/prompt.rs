//! Questions to a person.

use std::{
    io::{self, BufRead as _, IsTerminal as _, Write},
    process::{self, Command},
    sync::Once,
    thread,
};

use anyhow::{Context, Result};

use crate::exit::usage;

/// The exit code of a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Asks a question whose answer is yes or no. Without a terminal nobody can answer: then `flag` is needed.
pub(crate) fn confirm(question: &str, flag: &str) -> Result<bool> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Err(usage(format!("'{question}' cannot be asked without a terminal; pass {flag}")));
    }
    let mut err = io::stderr();
    write!(err, "{question} [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Asks for a password without showing it. Without a terminal it is the next line of the input; `missing` is the error if there
/// is none.
pub(crate) fn read_password(prompt: &str, missing: &str) -> Result<String> {
    if io::stdin().is_terminal() {
        restore_echo_on_interrupt();
        return match rpassword::prompt_password(format!("{prompt}: ")) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => process::exit(INTERRUPTED),
            read => read.context("read the password"),
        };
    }
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).context("read the password")?;
    if read == 0 {
        return Err(usage(format!("{missing}: type it in a terminal, or pass it as a line of the input")));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for a new password, in a terminal twice.
pub(crate) fn read_new_password(prompt: &str, missing: &str) -> Result<String> {
    let password = read_password(prompt, missing)?;
    if io::stdin().is_terminal() && read_password("Again", missing)? != password {
        return Err(usage("the two passwords differ"));
    }
    Ok(password)
}

/// Makes an interrupt end the program with the echo of the terminal on, which a question for a password turns off.
fn restore_echo_on_interrupt() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        // Without the thread, an interrupt ends the program as it ends any other.
        let _ = thread::Builder::new().name("lkr-interrupt".to_owned()).spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            if runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
                let _ = Command::new("stty").arg("echo").status();
                let _ = writeln!(io::stderr());
                process::exit(INTERRUPTED);
            }
        });
    });
}

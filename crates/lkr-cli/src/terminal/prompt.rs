//! Questions to a person.

use std::io::{self, BufRead as _, IsTerminal as _, Write};

use anyhow::{Context, Result};

use crate::exit::usage;

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

/// Asks for a password without showing it. Without a terminal it is the next line of the input.
pub(crate) fn read_password(prompt: &str) -> Result<String> {
    if io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("{prompt}: ")).context("read the password");
    }
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).context("read the password")?;
    if read == 0 {
        return Err(usage(
            "the password is missing: type it in a terminal, or pass it as a line of the input",
        ));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks for a new password, in a terminal twice.
pub(crate) fn read_new_password(prompt: &str) -> Result<String> {
    let password = read_password(prompt)?;
    if io::stdin().is_terminal() && read_password("Again")? != password {
        return Err(usage("the two passwords differ"));
    }
    Ok(password)
}

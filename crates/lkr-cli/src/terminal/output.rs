use std::io::{self, Write};

use anyhow::Result;
use console::{Style as ConsoleStyle, StyledObject, Term};
use serde_json::Value;

use crate::terminal::clean;

/// How results are printed.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Print JSON as the server answers it: one object, or one a line for a list.
    #[arg(long, global = true)]
    json: bool,
    /// Print ids or names alone, one a line, and no progress.
    #[arg(long, short, global = true, conflicts_with = "json")]
    quiet: bool,
}

/// Who reads the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A person.
    People,
    /// A program that reads JSON.
    Json,
    /// A program that reads ids or names.
    Names,
}

/// The standard output.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) style: Style,
    term: Term,
}

impl OutputArgs {
    pub(crate) fn output(self) -> Output {
        let style = match (self.json, self.quiet) {
            (true, _) => Style::Json,
            (_, true) => Style::Names,
            _ => Style::People,
        };
        Output { style, term: Term::stdout() }
    }
}

impl Output {
    /// Whether a person reads the output.
    pub(crate) fn is_for_people(&self) -> bool {
        self.style == Style::People
    }

    /// The width of the terminal in columns; `None` if the output is no terminal, where lines may be long.
    pub(crate) fn width(&self) -> Option<usize> {
        self.term.is_term().then(|| usize::from(self.term.size().1))
    }

    /// A text as a terminal may show it: without control characters but line breaks and tabs. A pipe gets it as it is.
    pub(crate) fn shown(&self, text: &str) -> String {
        if !self.term.is_term() {
            return text.to_owned();
        }
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
    }

    /// A text in bold, if the output shows colours.
    pub(crate) fn bold<T>(&self, text: T) -> StyledObject<T> {
        ConsoleStyle::new().bold().apply_to(text)
    }

    /// A text of less weight, if the output shows colours.
    pub(crate) fn dim<T>(&self, text: T) -> StyledObject<T> {
        ConsoleStyle::new().dim().apply_to(text)
    }

    /// A match of the query, if the output shows colours.
    pub(crate) fn highlight<T>(&self, text: T) -> StyledObject<T> {
        ConsoleStyle::new().yellow().bold().apply_to(text)
    }

    /// Prints lines. A reader that has gone ends the program quietly, as it ends others in a pipe.
    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let mut out = io::stdout().lock();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
            written => Ok(written?),
        }
    }

    /// Prints a line.
    pub(crate) fn line(&self, text: &str) -> Result<()> {
        self.print(&format!("{text}\n"))
    }

    /// Prints a JSON value on one line.
    pub(crate) fn json(&self, value: &Value) -> Result<()> {
        self.line(&value.to_string())
    }

    /// Prints what a command changed: the server's answer, a name, or a sentence.
    pub(crate) fn changed(&self, answer: &Value, name: &str, sentence: &str) -> Result<()> {
        match self.style {
            Style::Json => self.json(answer),
            Style::Names => self.line(name),
            Style::People => self.line(sentence),
        }
    }

    /// Prints a remark for people, beside the results.
    pub(crate) fn note(&self, text: &str) -> Result<()> {
        if self.is_for_people() {
            writeln!(io::stderr(), "{}", clean(text))?;
        }
        Ok(())
    }

    /// Prints the warnings that an answer of the server contains.
    pub(crate) fn warnings_of(&self, answer: &Value) -> Result<()> {
        let warnings = answer.get("warnings").and_then(Value::as_array).into_iter().flatten();
        warnings.filter_map(Value::as_str).try_for_each(|warning| self.warn(warning))
    }

    /// Prints a warning, in every style.
    pub(crate) fn warn(&self, text: &str) -> Result<()> {
        let label = ConsoleStyle::new().for_stderr().yellow().apply_to("warning:");
        writeln!(io::stderr(), "{label} {}", clean(text))?;
        Ok(())
    }
}

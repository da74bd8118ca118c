//! `lkr keys`: the API keys of the account.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    commands::{
        Common, List,
        ids::KEYS,
        query::{QueryString, segment},
    },
    exit::usage,
    http::Client,
    program::Program,
    terminal::{Column, Output, Style, day, field},
};

/// The arguments of `lkr keys`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a key. It is shown once.
    Create {
        /// What the key is for.
        name: String,
        /// Let it see this space alone; may be repeated. [default: those of its owner]
        #[arg(long = "space", short, value_name = "NAME")]
        spaces: Vec<String>,
        /// Let it read only.
        #[arg(long)]
        read_only: bool,
        /// Let it expire after this time, such as 90d, 12h or 30m. [default: never]
        #[arg(long, value_name = "TIME", value_parser = seconds)]
        expires_in: Option<u64>,
    },
    /// Delete a key. It is refused from the next request.
    Rm {
        /// The id of the key, or a unique beginning of it.
        key: String,
    },
}

/// Lists the keys, or does what is asked for.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let Common { target, output } = &args.common;
    let connection = target.log_in(program)?;
    act(args.action.as_ref(), &connection.client, &output.output())?;
    connection.close()?;
    Ok(ExitCode::SUCCESS)
}

fn act(action: Option<&Action>, client: &Client, output: &Output) -> Result<()> {
    match action {
        None => list().print(client, output, "/auth/keys", &QueryString::default(), None).map(drop),
        Some(Action::Create { name, spaces, read_only, expires_in, .. }) => {
            let mut body = json!({"name": name, "expires_in": expires_in});
            if let Some(body) = body.as_object_mut() {
                if !spaces.is_empty() {
                    body.insert("spaces".to_owned(), json!(spaces));
                }
                if *read_only {
                    body.insert("scope".to_owned(), json!("read"));
                }
            }
            let created = client.post("/auth/keys", &body)?.data;
            let printed = match output.style {
                Style::Json => output.json(&created),
                _ => output.line(&field(&created, "key")),
            };
            printed.or_else(|error| {
                // Nobody has seen it, and it is not shown again.
                client.delete(&format!("/auth/keys/{}", segment(&field(&created, "id"))))?;
                Err(error.context("the key could not be printed, so it was deleted"))
            })
        }
        Some(Action::Rm { key, .. }) => {
            let key = KEYS.complete(client, key)?;
            let answer = client.delete(&format!("/auth/keys/{}", segment(&key)))?.data;
            output.changed(&answer, &key, &format!("deleted {key}"))
        }
    }
}

const fn list() -> List<'static> {
    List {
        name: "id",
        columns: &[
            Column::Fixed("KEY"),
            Column::Text("NAME"),
            Column::Fixed("SCOPE"),
            Column::Text("SPACES"),
            Column::Fixed("EXPIRES (UTC)"),
        ],
        row: |key| {
            let spaces = key.get("spaces").and_then(Value::as_array).into_iter().flatten();
            let spaces: Vec<&str> = spaces.filter_map(Value::as_str).collect();
            let expires = day(key, "expires_at");
            vec![
                field(key, "id"),
                field(key, "name"),
                field(key, "scope"),
                if spaces.is_empty() { "all".to_owned() } else { spaces.join(", ") },
                if expires.is_empty() { "never".to_owned() } else { expires },
            ]
        },
    }
}

/// A time with its unit, in seconds.
fn seconds(text: &str) -> Result<u64> {
    let unit = text.chars().last().unwrap_or_default();
    let seconds_of_unit = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(usage("expected a number with a unit: 90d, 12h, 30m or 60s")),
    };
    let number: Option<u64> = text.strip_suffix(unit).and_then(|number| number.parse().ok());
    let seconds = number.and_then(|number| number.checked_mul(seconds_of_unit));
    seconds.ok_or_else(|| usage("expected a number with a unit: 90d, 12h, 30m or 60s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        assert_eq!((seconds("90d").unwrap(), seconds("30m").unwrap()), (7_776_000, 1_800));
        for wrong in ["", "90", "d", "-1d", "1.5h", "99999999999999999999d"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

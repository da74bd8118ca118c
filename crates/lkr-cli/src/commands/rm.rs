//! `lkr rm`: deletes documents.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    arguments::expression,
    commands::{Common, documents},
    exit::{Exit, exit_of, reason},
    http::Client,
    program::Program,
    terminal::{Output, clean, confirm, field, plural},
    wait::wait_visibly,
};

/// The arguments of `lkr rm`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Delete these documents, named by their ids, unique beginnings of their ids, or sources.
    #[arg(value_name = "DOCUMENT", required_unless_present = "condition", conflicts_with = "condition")]
    documents: Vec<String>,
    /// Delete the documents that match this filter expression and that the account may delete.
    #[arg(long = "where", value_name = "JSON")]
    condition: Option<String>,
    /// Say what would be deleted, and delete nothing.
    #[arg(long)]
    dry_run: bool,
    /// Delete without asking.
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    common: Common,
}

/// Deletes the documents, and prints what was deleted.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let connection = args.common.target.log_in(program)?;
    let exit = match &args.condition {
        Some(condition) => delete_where(args, &connection.client, &output, &expression(condition)?),
        None => delete_each(args, &connection.client, &output),
    };
    connection.close()?;
    exit.map(ExitCode::from)
}

/// Deletes documents one by one. All names are looked up before it asks.
fn delete_each(args: &Args, client: &Client, output: &Output) -> Result<Exit> {
    let (mut found, mut failed) = (Vec::new(), Vec::new());
    for named in &args.documents {
        match look_up(client, named) {
            Ok(document) => found.push(document),
            Err(error) => {
                output.warn(&format!("{named}: {}", reason(&error)))?;
                failed.push(exit_of(&error));
            }
        }
    }
    if args.dry_run {
        for (id, title) in &found {
            output.line(&if output.is_for_people() {
                format!("would delete {id}  {}", clean(title))
            } else {
                id.clone()
            })?;
        }
    } else if !found.is_empty() {
        let question = match found.as_slice() {
            [(id, title)] => format!("Delete {} ({id})?", clean(title)),
            several => format!("Delete {}?", plural(several.len() as u64, "document")),
        };
        if !args.yes && !confirm(&question, "--yes")? {
            output.note("nothing was deleted")?;
            return Ok(Exit::Failed);
        }
        for (id, _) in &found {
            if let Err(error) = delete(client, output, id) {
                output.warn(&format!("{id}: {}", reason(&error)))?;
                failed.push(exit_of(&error));
            }
        }
    }
    Ok(match failed.as_slice() {
        [] => Exit::Done,
        [exit, ..] if failed.len() == args.documents.len() => *exit,
        _ => Exit::Partly,
    })
}

/// The id and the title of a document.
fn look_up(client: &Client, named: &str) -> Result<(String, String)> {
    let id = documents::find(client, named)?;
    let document = client.get(&format!("/documents/{id}"))?.data;
    Ok((id, document.get("l1").map(|l1| field(l1, "title")).unwrap_or_default()))
}

/// Deletes one document.
fn delete(client: &Client, output: &Output, id: &str) -> Result<()> {
    let deleted = client.delete(&format!("/documents/{id}"))?.data;
    output.changed(&deleted, id, &format!("deleted {id}"))
}

/// Counts the documents that match, asks, and deletes them.
fn delete_where(args: &Args, client: &Client, output: &Output, condition: &Value) -> Result<Exit> {
    let counted = client.post("/documents/delete", &json!({"where": condition}))?.data;
    let count = counted.get("documents").and_then(Value::as_u64).unwrap_or_default();
    let documents = plural(count, "document");
    if args.dry_run || count == 0 {
        let would = if args.dry_run { "would be" } else { "match; nothing was" };
        output.changed(&counted, &count.to_string(), &format!("{documents} {would} deleted"))?;
        return Ok(Exit::Done);
    }
    if !args.yes && !confirm(&format!("Delete {documents}?"), "--yes")? {
        output.note("nothing was deleted")?;
        return Ok(Exit::Failed);
    }
    let accepted = client.post("/documents/delete", &json!({"where": condition, "dry_run": false}))?.data;
    let task_id = field(&accepted, "task_id");
    match wait_visibly(client, output, &task_id, &format!("deleting {documents}"))?.outcome() {
        Ok(result) => {
            let deleted = result.pointer("/deleted/l1").and_then(Value::as_u64).unwrap_or_default();
            let sentence = format!("deleted {}", plural(deleted, "document"));
            output.changed(&result, &deleted.to_string(), &sentence)?;
            Ok(Exit::Done)
        }
        Err(reason) => {
            output.warn(&reason)?;
            Ok(Exit::Partly)
        }
    }
}

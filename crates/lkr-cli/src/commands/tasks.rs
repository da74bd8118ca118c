//! `lkr tasks`: lists, shows, awaits, repeats and cancels tasks.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    commands::{Common, List, ids::TASKS, query::QueryString},
    exit::{Exit, usage},
    http::Client,
    program::Program,
    terminal::{Column, Output, Style, date, field, moment, plural},
    wait::wait_visibly,
};

/// The tasks that are listed unless a limit is given.
const LISTED: usize = 50;

/// The arguments of `lkr tasks`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    /// List tasks with this status.
    #[arg(long, value_parser = ["pending", "running", "done", "failed"])]
    status: Option<String>,
    /// List the tasks of this space.
    #[arg(long, short, value_name = "NAME")]
    space: Option<String>,
    /// List this many tasks at most. [default: 50]
    #[arg(long, short = 'n', value_name = "COUNT")]
    limit: Option<usize>,
}

impl ListArgs {
    const fn is_given(&self) -> bool {
        self.status.is_some() || self.space.is_some() || self.limit.is_some()
    }
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show a task.
    Show(OneTask),
    /// Wait until a task has ended. Fails if the task failed.
    Wait(OneTask),
    /// Run a failed task again, from where it failed.
    Retry(OneTask),
    /// Cancel a task that has not ended.
    Cancel(OneTask),
    /// Remove a task that has ended from the list. Its document stays.
    Rm(OneTask),
}

#[derive(Debug, clap::Args)]
struct OneTask {
    /// The id of the task, or a unique beginning of it.
    #[arg(value_name = "TASK")]
    task: String,
}

/// Lists tasks, newest first, or does what is asked for.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let Common { target, output } = &args.common;
    if args.action.is_some() && args.list.is_given() {
        return Err(usage("--status, --space and --limit are for the list of tasks"));
    }
    let connection = match &args.action {
        None | Some(Action::Show(_) | Action::Wait(_)) => target.connect(program)?,
        Some(_) => target.log_in(program)?,
    };
    let (client, output) = (&connection.client, output.output());
    let exit = match &args.action {
        None => list(client, &output, &args.list).map(|()| Exit::Done),
        Some(action) => act(action, client, &output),
    };
    connection.close()?;
    exit.map(ExitCode::from)
}

fn act(action: &Action, client: &Client, output: &Output) -> Result<Exit> {
    let (Action::Show(one) | Action::Wait(one) | Action::Retry(one) | Action::Cancel(one) | Action::Rm(one)) =
        action;
    let task = &TASKS.complete(client, &one.task)?;
    let path = format!("/documents/tasks/{task}");
    match action {
        Action::Show(_) => print(output, &client.get(&path)?.data)?,
        Action::Wait(_) => {
            let has_failed = wait_visibly(client, output, task, "waiting")?.outcome().is_err();
            print(output, &client.get(&path)?.data)?;
            if has_failed {
                return Ok(Exit::Failed);
            }
        }
        Action::Retry(_) => {
            print_change(output, &client.post(&format!("{path}/retry"), &json!({}))?.data, task)?;
        }
        Action::Cancel(_) => {
            print_change(output, &client.post(&format!("{path}/cancel"), &json!({}))?.data, task)?;
        }
        Action::Rm(_) => print_change(output, &client.delete(&path)?.data, task)?,
    }
    Ok(Exit::Done)
}

fn list(client: &Client, output: &Output, args: &ListArgs) -> Result<()> {
    let query = QueryString::default()
        .with_some("status", args.status.clone())
        .with_some("space", args.space.clone());
    let list = List {
        name: "task_id",
        columns: &[
            Column::Fixed("TASK"),
            Column::Fixed("KIND"),
            Column::Fixed("STATUS"),
            Column::Text("DETAIL"),
            Column::Fixed("UPDATED (UTC)"),
        ],
        row: |task| {
            vec![
                field(task, "task_id"),
                field(task, "kind"),
                field(task, "status"),
                if field(task, "status") == "running" { progress(task) } else { detail(task) },
                date(task, "updated_at"),
            ]
        },
    };
    let limit = args.limit.unwrap_or(LISTED);
    let count = list.print(client, output, "/documents/tasks", &query, Some(limit))?;
    output.note(&if count == limit {
        format!("the newest {count} tasks; --limit shows more")
    } else {
        plural(count as u64, "task")
    })
}

/// The stage of a running task, with the share that is done.
fn progress(task: &Value) -> String {
    if field(task, "status") != "running" {
        return String::new();
    }
    let progress = task.get("progress").unwrap_or(&Value::Null);
    let (done, total) = (field(progress, "done"), field(progress, "total"));
    if total.is_empty() || total == "0" {
        return field(task, "stage");
    }
    format!("{} {done}/{total}", field(task, "stage"))
}

/// The title of what was ingested, or the reason of a failure, with what failed before it.
fn detail(task: &Value) -> String {
    match (task.get("error"), task.get("result")) {
        (Some(error), _) if error.is_object() => {
            let (title, message) = (field(task, "title"), field(error, "message"));
            if title.is_empty() { message } else { format!("{title}: {message}") }
        }
        (_, Some(result)) if result.get("duplicate_of").is_some_and(Value::is_object) => {
            let of = result.get("duplicate_of").unwrap_or(&Value::Null);
            format!("duplicate of {}", field(of, "doc_id"))
        }
        (_, Some(result)) if result.is_object() => field(result, "title"),
        _ => field(task, "title"),
    }
}

fn print(output: &Output, task: &Value) -> Result<()> {
    match output.style {
        Style::Json => output.json(task),
        Style::Names => output.line(&field(task, "status")),
        Style::People => {
            for name in ["task_id", "kind", "status", "title", "doc_id", "space", "created_by", "attempts"] {
                let value = field(task, name);
                if !value.is_empty() {
                    output.line(&format!("{name:<10} {value}"))?;
                }
            }
            output.line(&format!("{:<10} {}", "created", moment(task, "created_at")))?;
            output.line(&format!("{:<10} {}", "updated", moment(task, "updated_at")))?;
            for (name, value) in [("progress", progress(task)), ("detail", detail(task))] {
                if !value.is_empty() {
                    output.line(&format!("{name:<10} {value}"))?;
                }
            }
            Ok(())
        }
    }
}

fn print_change(output: &Output, answer: &Value, task: &str) -> Result<()> {
    let status = field(answer, "status");
    let sentence = if status.is_empty() { format!("removed {task}") } else { format!("{task} is {status}") };
    output.changed(answer, task, &sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_the_title_the_duplicate_or_the_reason() {
        assert_eq!(detail(&json!({"result": {"title": "Tides"}, "error": null})), "Tides");
        let duplicate = json!({"result": {"title": "Tides", "duplicate_of": {"doc_id": "d"}}});
        assert_eq!(detail(&duplicate), "duplicate of d");
        assert_eq!(detail(&json!({"result": null, "error": {"message": "no text"}})), "no text");
        let named = json!({"title": "scan.pdf", "result": null, "error": {"message": "no text"}});
        assert_eq!(detail(&named), "scan.pdf: no text");
        assert_eq!(detail(&json!({"title": "scan.pdf"})), "scan.pdf");
        let running = json!({"status": "running", "stage": "embed", "progress": {"done": 3, "total": 9}});
        assert_eq!(progress(&running), "embed 3/9");
        assert_eq!(progress(&json!({"status": "done", "stage": "embed"})), "");
    }
}

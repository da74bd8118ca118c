//! `lkr groups`: groups of accounts.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::json;

use crate::{
    commands::{
        Common, List, members,
        query::{QueryString, segment},
    },
    exit::Exit,
    http::Client,
    program::Program,
    terminal::{Column, Output, confirm, date, field},
};

/// The arguments of `lkr groups`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a group.
    Create {
        /// The name, of a-z 0-9 . _ -.
        name: String,
        /// Its title.
        #[arg(long)]
        title: Option<String>,
    },
    /// Delete a group, and with it the rights that it gave.
    Rm {
        /// The group.
        name: String,
        /// Delete without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// List the accounts in a group.
    Members {
        /// The group.
        name: String,
    },
    /// Add an account to a group.
    Add {
        /// The group.
        name: String,
        /// The account.
        username: String,
    },
    /// Take an account out of a group.
    Drop {
        /// The group.
        name: String,
        /// The account.
        username: String,
    },
}

/// Lists the groups, or does what is asked for.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let Common { target, output } = &args.common;
    let connection = target.log_in(program)?;
    let exit = act(args.action.as_ref(), &connection.client, &output.output());
    connection.close()?;
    exit.map(ExitCode::from)
}

fn act(action: Option<&Action>, client: &Client, output: &Output) -> Result<Exit> {
    let none = QueryString::default();
    match action {
        None => {
            let groups = List {
                name: "group",
                columns: &[Column::Fixed("GROUP"), Column::Text("TITLE"), Column::Fixed("CREATED (UTC)")],
                row: |group| vec![field(group, "group"), field(group, "title"), date(group, "created_at")],
            };
            groups.print(client, output, "/groups", &none, None)?;
        }
        Some(Action::Create { name, title, .. }) => {
            let answer = client.post("/groups", &json!({"group": name, "title": title}))?.data;
            output.changed(&answer, name, &format!("created {name}"))?;
        }
        Some(Action::Rm { name, yes, .. }) => {
            let question = format!("Delete the group {name}, and the rights that it gave?");
            if !yes && !confirm(&question, "--yes")? {
                return Ok(Exit::Failed);
            }
            let answer = client.delete(&path(name))?.data;
            output.changed(&answer, name, &format!("deleted {name}"))?;
        }
        Some(Action::Members { name, .. }) => {
            let members = List {
                name: "username",
                columns: &[Column::Fixed("ACCOUNT")],
                row: |member| vec![field(member, "username")],
            };
            members.print(client, output, &format!("{}/members", path(name)), &none, None)?;
        }
        Some(Action::Add { name, username, .. }) => {
            let answer = client.put(&member(name, username), &json!({}))?.data;
            output.changed(&answer, username, &format!("{username} is in {name}"))?;
        }
        Some(Action::Drop { name, username, .. }) => {
            let listing = format!("{}/members", path(name));
            let missing = format!("{username} is not in {name}; 'lkr groups members {name}' lists who is");
            members::require(client, &listing, "username", username, &missing)?;
            let answer = client.delete(&member(name, username))?.data;
            output.changed(&answer, username, &format!("{username} is no longer in {name}"))?;
        }
    }
    Ok(Exit::Done)
}

fn path(group: &str) -> String {
    format!("/groups/{}", segment(group))
}

fn member(group: &str, username: &str) -> String {
    format!("{}/members/{}", path(group), segment(username))
}

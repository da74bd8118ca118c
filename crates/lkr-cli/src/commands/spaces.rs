//! `lkr spaces`: spaces and their members.

use std::process::ExitCode;

use anyhow::Result;
use lkr::SpaceName;
use serde_json::{Map, Value, json};

use crate::{
    commands::{
        Common, List, members,
        query::{QueryString, segment},
    },
    exit::{Exit, usage},
    http::{ApiError, Client},
    program::Program,
    terminal::{Column, Output, confirm, field},
    wait::wait_visibly,
};

/// The arguments of `lkr spaces`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a space. Without --read and --write it is for its members alone.
    Create {
        /// The name, of a-z 0-9 . _ -; it never changes.
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Change a space.
    Set {
        /// The space.
        name: String,
        #[command(flatten)]
        change: Change,
    },
    /// Delete a space. Its name is never used again.
    Rm {
        /// The space.
        name: String,
        /// Delete its documents too.
        #[arg(long)]
        documents: bool,
        /// Delete without asking.
        #[arg(long, short)]
        yes: bool,
    },
    /// List the members of a space.
    Members {
        /// The space.
        name: String,
    },
    /// Make an account or a group a member of a space, or change its role.
    Grant {
        /// The space.
        name: String,
        /// An account, or group:NAME.
        member: String,
        /// What the member may do.
        #[arg(value_parser = ["reader", "writer", "manager"])]
        role: String,
    },
    /// Remove a member from a space.
    Revoke {
        /// The space.
        name: String,
        /// An account, or group:NAME.
        member: String,
    },
}

/// What can be changed about a space.
#[derive(Debug, clap::Args)]
struct Change {
    /// Its title.
    #[arg(long)]
    title: Option<String>,
    /// What it is for.
    #[arg(long)]
    description: Option<String>,
    /// Who may read it.
    #[arg(long, value_parser = ["everyone", "members"])]
    read: Option<String>,
    /// Who may add documents.
    #[arg(long, value_parser = ["accounts", "members"])]
    write: Option<String>,
}

impl Change {
    fn body(&self) -> Map<String, Value> {
        let fields = [
            ("title", &self.title),
            ("description", &self.description),
            ("read", &self.read),
            ("write", &self.write),
        ];
        let given = fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        given.map(|(name, value)| (name.to_owned(), json!(value))).collect()
    }
}

/// Lists the spaces that the account may read, or does what is asked for.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let Common { target, output } = &args.common;
    let connection = match &args.action {
        None => target.connect(program)?,
        Some(Action::Create { .. }) => target.log_in_or_create(program)?,
        Some(_) => target.log_in(program)?,
    };
    let exit = act(args.action.as_ref(), &connection.client, &output.output());
    connection.close()?;
    exit.map(ExitCode::from)
}

const fn list() -> List<'static> {
    List {
        name: "space",
        columns: &[
            Column::Fixed("SPACE"),
            Column::Text("TITLE"),
            Column::Number("DOCUMENTS"),
            Column::Fixed("READ"),
            Column::Fixed("WRITE"),
            Column::Fixed("YOUR ROLE"),
        ],
        row: |space| {
            ["space", "title", "documents", "read", "write", "your_role"]
                .map(|name| field(space, name))
                .into()
        },
    }
}

fn act(action: Option<&Action>, client: &Client, output: &Output) -> Result<Exit> {
    let Some(action) = action else {
        list().print(client, output, "/spaces", &QueryString::default(), None)?;
        return Ok(Exit::Done);
    };
    match action {
        Action::Create { name, change, .. } => {
            let mut body = change.body();
            body.insert("space".to_owned(), json!(name));
            let created = client.post("/spaces", &Value::Object(body))?.data;
            output.changed(&created, name, &format!("created {name}"))?;
        }
        Action::Set { name, change, .. } => {
            let change = change.body();
            if change.is_empty() {
                return Err(usage("nothing to change: give --title, --description, --read or --write"));
            }
            let answer = client.patch(&path(name), &Value::Object(change))?.data;
            output.changed(&answer, name, &format!("changed {name}"))?;
        }
        Action::Rm { name, documents, yes, .. } => return remove(client, output, name, *documents, *yes),
        Action::Members { name, .. } => {
            let members = List {
                name: "member",
                columns: &[Column::Fixed("MEMBER"), Column::Fixed("ROLE")],
                row: |member| vec![field(member, "member"), field(member, "role")],
            };
            members.print(
                client,
                output,
                &format!("{}/members", path(name)),
                &QueryString::default(),
                None,
            )?;
        }
        Action::Grant { name, member: plain, role, .. } => {
            let member = member_name(plain);
            let path = format!("{}/members/{}", path(name), segment(&member));
            let answer = client.put(&path, &json!({"role": role}))?.data;
            output.changed(&answer, &member, &format!("{plain} is a {role} of {name}"))?;
        }
        Action::Revoke { name, member: plain, .. } => {
            let (member, listing) = (member_name(plain), format!("{}/members", path(name)));
            let missing =
                format!("{plain} is not a member of {name}; 'lkr spaces members {name}' lists them");
            members::require(client, &listing, "member", &member, &missing)?;
            let answer = client.delete(&format!("{listing}/{}", segment(&member)))?.data;
            output.changed(&answer, &member, &format!("{plain} is no longer a member of {name}"))?;
        }
    }
    Ok(Exit::Done)
}

fn path(space: &str) -> String {
    format!("/spaces/{}", segment(space))
}

/// A member as the service names it; a plain name is an account's.
fn member_name(member: &str) -> String {
    if member.contains(':') { member.to_owned() } else { format!("user:{member}") }
}

/// A conflict with what to do about it: the space has documents, or its deletion has begun.
fn with_hint(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<ApiError>() {
        Some(ApiError { code: Some(1003), message, .. }) => {
            let message = format!("{message}; --documents deletes its documents too");
            ApiError { status: 409, code: Some(1003), message, retry_after: None }.into()
        }
        _ => error,
    }
}

/// Deletes a space, and waits until its documents are deleted too.
fn remove(client: &Client, output: &Output, name: &str, documents: bool, yes: bool) -> Result<Exit> {
    let what = if documents { format!("{name} and all of its documents") } else { name.to_owned() };
    if !yes && !confirm(&format!("Delete the space {what}? Its name is never used again."), "--yes")? {
        return Ok(Exit::Failed);
    }
    let mode = documents.then_some("delete");
    let query = QueryString::default().with_some("documents", mode);
    let answer = client.delete(&format!("{}{query}", path(name)));
    let can_help = !documents && name != SpaceName::DEFAULT;
    let answer = answer.map_err(|error| if can_help { with_hint(error) } else { error })?.data;
    let task = field(&answer, "task_id");
    if !task.is_empty() {
        let ended = wait_visibly(client, output, &task, &format!("deleting {what}"))?;
        if let Err(reason) = ended.outcome() {
            output.warn(&reason)?;
            return Ok(Exit::Partly);
        }
    }
    output.changed(&answer, name, &format!("deleted {name}"))?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_member_is_an_account() {
        assert_eq!((member_name("eva"), member_name("group:ops")), ("user:eva".into(), "group:ops".into()));
    }
}

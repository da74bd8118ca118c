//! `lkr users`: accounts. All of it needs an admin.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Map, Value, json};

use crate::{
    commands::{
        Common, List,
        query::{QueryString, segment},
    },
    exit::{Exit, usage},
    http::Client,
    program::Program,
    terminal::{Column, Output, confirm, date, field, read_new_password},
};

/// The arguments of `lkr users`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create an account. The password is asked for, or read from the input; its owner must change it first.
    Create {
        /// The name.
        username: String,
        /// What the account may do.
        #[arg(long, value_parser = ["user", "admin"])]
        role: Option<String>,
        /// Let the account keep this password.
        #[arg(long)]
        keep_password: bool,
    },
    /// Change the role of an account, disable or enable it.
    Set {
        /// The account.
        username: String,
        /// What it may do.
        #[arg(long, value_parser = ["user", "admin"])]
        role: Option<String>,
        /// Refuse it, and end its sessions.
        #[arg(long)]
        disable: bool,
        /// Admit it again.
        #[arg(long, conflicts_with = "disable")]
        enable: bool,
    },
    /// Set a new password, which its owner must change first. Ends the sessions and keys of the account.
    Password {
        /// The account.
        username: String,
    },
    /// Delete an account. Its documents stay.
    Rm {
        /// The account.
        username: String,
        /// Delete without asking.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Lists the accounts, or does what is asked for.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let Common { target, output } = &args.common;
    let connection = match &args.action {
        Some(Action::Create { .. }) => target.log_in_or_create(program)?,
        _ => target.log_in(program)?,
    };
    let exit = act(args.action.as_ref(), &connection.client, &output.output());
    connection.close()?;
    exit.map(ExitCode::from)
}

fn act(action: Option<&Action>, client: &Client, output: &Output) -> Result<Exit> {
    match action {
        None => {
            list().print(client, output, "/users", &QueryString::default(), None)?;
        }
        Some(Action::Create { username, role, keep_password, .. }) => {
            let password = read_new_password(
                "Password of the new account",
                "the password of the new account is missing",
            )?;
            let body = json!({
                "username": username, "password": password, "role": role, "must_change_password": !keep_password
            });
            output.changed(&client.post("/users", &body)?.data, username, &format!("created {username}"))?;
        }
        Some(Action::Set { username, role, disable, enable, .. }) => {
            let mut change = Map::new();
            change.extend(role.as_ref().map(|role| ("role".to_owned(), json!(role))));
            if *disable || *enable {
                change.insert("disabled".to_owned(), json!(disable));
            }
            if change.is_empty() {
                return Err(usage("nothing to change: give --role, --disable or --enable"));
            }
            output.changed(
                &client.patch(&path(username), &Value::Object(change))?.data,
                username,
                &format!("changed {username}"),
            )?;
        }
        Some(Action::Password { username, .. }) => {
            let password = read_new_password("New password", "the new password is missing")?;
            let body = json!({"new_password": password});
            let answer = client.post(&format!("{}/password", path(username)), &body)?.data;
            output.changed(&answer, username, &format!("set the password of {username}"))?;
        }
        Some(Action::Rm { username, yes, .. }) => {
            if !yes && !confirm(&format!("Delete the account {username}?"), "--yes")? {
                return Ok(Exit::Failed);
            }
            output.changed(
                &client.delete(&path(username))?.data,
                username,
                &format!("deleted {username}"),
            )?;
        }
    }
    Ok(Exit::Done)
}

const fn list() -> List<'static> {
    List {
        name: "username",
        columns: &[
            Column::Fixed("ACCOUNT"),
            Column::Fixed("ROLE"),
            Column::Text("STATUS"),
            Column::Fixed("CREATED (UTC)"),
        ],
        row: |user| {
            vec![field(user, "username"), field(user, "role"), status(user), date(user, "created_at")]
        },
    }
}

fn status(user: &Value) -> String {
    let is = |name: &str| user.get(name).and_then(Value::as_bool).unwrap_or_default();
    match (is("disabled"), is("must_change_password")) {
        (true, _) => "disabled".to_owned(),
        (_, true) => "must change its password".to_owned(),
        _ => "active".to_owned(),
    }
}

fn path(username: &str) -> String {
    format!("/users/{}", segment(username))
}

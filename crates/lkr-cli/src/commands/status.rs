//! `lkr status`: which server, which account, and what is there.

use std::process::ExitCode;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    commands::Common,
    exit::no_server,
    program::Program,
    terminal::{Style, field},
};

/// The arguments of `lkr status`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
}

/// Prints the server, the account and the numbers of documents.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let connection = args.common.target.connect(program)?;
    let client = &connection.client;
    let ready: Value =
        serde_json::from_str(&client.page("/readyz")?).map_err(|_| no_server(client.base()))?;
    let ready = ready.get("data").cloned().unwrap_or_default();
    let account = if client.has_credential() { client.get("/auth/me")?.data } else { Value::Null };
    let stats = client.get("/knowledge/stats")?.data;
    let server =
        if args.common.target.names_folder() { args.common.target.name()? } else { client.base().to_owned() };
    match output.style {
        Style::Json => {
            output.json(&json!({"server": server, "account": account, "ready": ready, "stats": stats}))?;
        }
        Style::Names => output.line(&field(&ready, "status"))?,
        Style::People => {
            output.line(&format!("server     {server}"))?;
            output.line(&format!("version    {}", field(&ready, "version")))?;
            output.line(&format!("status     {}", field(&ready, "status")))?;
            let checks = ready.get("checks").and_then(Value::as_object).into_iter().flatten();
            for (name, check) in checks.filter(|(_, check)| field(check, "status") != "ok") {
                output.line(&format!(
                    "           {name} is {}: {}",
                    field(check, "status"),
                    field(check, "reason")
                ))?;
            }
            let name = field(&account, "username");
            let shown = if name.is_empty() {
                "none".to_owned()
            } else {
                format!("{name} ({})", field(&account, "role"))
            };
            output.line(&format!("account    {shown}"))?;
            output.line(&format!("documents  {}", field(&stats, "documents_total")))?;
            let chunks = stats.get("collections").map(|counts| field(counts, "chunks")).unwrap_or_default();
            output.line(&format!("chunks     {chunks}"))?;
        }
    }
    connection.close()?;
    Ok(ExitCode::SUCCESS)
}

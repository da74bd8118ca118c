//! Calls every tool of a server with rmcp's client, with a key that may write and one that may not.

use std::env;

use anyhow::{Context, Result, ensure};
use rmcp::{
    RoleClient, ServiceExt,
    model::CallToolRequestParams,
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, TokioChildProcess,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use tokio::process::Command;

type Client = RunningService<RoleClient, ()>;

#[tokio::main]
async fn main() -> Result<()> {
    let url = env::var("LKR_URL")?;
    let password = env::var("LKR_ADMIN_PASSWORD")?;
    let login = post(&url, "/auth/login", None, &json!({ "username": "admin", "password": password }))?;
    let token = login["access_token"].as_str().context("no access_token")?.to_owned();
    let key = |limits: Value| -> Result<String> {
        let made = post(&url, "/auth/keys", Some(&token), &limits)?;
        Ok(made["key"].as_str().context("no key")?.to_owned())
    };
    let writing = key(json!({ "name": "writes" }))?;
    let reading = key(json!({ "name": "reads", "scope": "read" }))?;
    check("HTTP", over_http(&url, &writing).await?, over_http(&url, &reading).await?).await?;
    check("standard input", over_stdio(&url, &writing).await?, over_stdio(&url, &reading).await?).await
}

async fn over_http(url: &str, key: &str) -> Result<Client> {
    let config = StreamableHttpClientTransportConfig::with_uri(format!("{url}/mcp")).auth_header(key);
    Ok(().serve(StreamableHttpClientTransport::from_config(config)).await?)
}

async fn over_stdio(url: &str, key: &str) -> Result<Client> {
    let mut command = Command::new(env::var("LKR_BIN")?);
    command.args(["mcp", "--server", url]).env("LKR_TOKEN", key);
    Ok(().serve(TokioChildProcess::new(command)?).await?)
}

async fn check(transport: &str, writing: Client, reading: Client) -> Result<()> {
    let names = |tools: Vec<rmcp::model::Tool>| -> Vec<String> {
        tools.into_iter().map(|tool| tool.name.into_owned()).collect()
    };
    let read_only = ["search", "fetch", "context", "list"];
    ensure!(names(reading.list_all_tools().await?) == read_only, "a key that may only read sees other tools");
    ensure!(names(writing.list_all_tools().await?) == [&read_only[..], &["add"]].concat(), "add is missing");
    let text = format!("# Amber over {transport}\n\nAmber is the resin of old trees, read over {transport}.");
    let added: Value = serde_json::from_str(&call(&writing, "add", json!({ "text": text })).await?)?;
    ensure!(added["status"] == "done", "{added}");
    for client in [&writing, &reading] {
        let query = json!({ "query": format!("resin \"over {transport}\"") });
        ensure!(call(client, "search", query.clone()).await?.contains("old trees"), "search");
        ensure!(call(client, "context", query).await?.contains("old trees"), "context");
        ensure!(call(client, "fetch", json!({ "id": added["id"] })).await?.contains("old trees"), "fetch");
        ensure!(call(client, "list", json!({})).await?.contains("Amber"), "list");
        let resources = client.list_all_resources().await?;
        ensure!(resources.iter().any(|resource| resource.name.contains("Amber")), "resources");
    }
    ensure!(call(&reading, "add", json!({ "text": "x" })).await.is_err(), "a key that may only read added a document");
    let revision = writing.peer_info().map(|info| info.protocol_version.to_string());
    println!("{transport}: revision {revision:?}");
    writing.cancel().await?;
    reading.cancel().await?;
    Ok(())
}

/// The text of a tool's result.
async fn call(client: &Client, name: &'static str, arguments: Value) -> Result<String> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let result = client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await?;
    let text = serde_json::to_string(&result.content)?;
    ensure!(result.is_error != Some(true), "{name}: {text}");
    let first = result.content.first().and_then(|part| part.as_text()).map(|part| part.text.clone());
    first.with_context(|| format!("{name} returned no text: {text}"))
}

fn post(url: &str, path: &str, token: Option<&str>, body: &Value) -> Result<Value> {
    let mut request = ureq::post(format!("{url}/api/v1{path}"));
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let envelope: Value = request.send_json(body)?.body_mut().read_json()?;
    Ok(envelope["data"].clone())
}

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::http::Client;

/// The default address of a server.
pub(crate) const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// The server and the account.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// Use the server at this address. [default: http://127.0.0.1:8080]
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Log in to this account.
    #[arg(long, value_name = "NAME", default_value = "admin")]
    user: String,
    /// Read the account's password from this file.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    password_file: Option<PathBuf>,
    /// Use this access token or API key instead of a password.
    #[arg(long)]
    token: Option<String>,
}

impl Login {
    /// A client without a login.
    pub(crate) fn anonymous(&self) -> Client {
        Client::new(self.address())
    }

    /// The address of the server.
    pub(crate) fn address(&self) -> &str {
        self.server.as_deref().unwrap_or(DEFAULT_SERVER)
    }

    /// Whether a server was given.
    pub(crate) const fn names_server(&self) -> bool {
        self.server.is_some()
    }

    /// Whether a password or a token was given.
    pub(crate) const fn can_log_in(&self) -> bool {
        self.password_file.is_some() || self.token.is_some()
    }

    /// A client that is logged in.
    pub(crate) fn log_in(&self) -> Result<Client> {
        let client = self.anonymous();
        if let Some(token) = &self.token {
            return Ok(client.with_bearer(token));
        }
        let answer = client.post("/auth/login", &self.credentials()?)?;
        let token = answer.data.get("access_token").and_then(|token| token.as_str());
        Ok(client.with_bearer(token.context("the login response has no access_token")?))
    }

    /// The body of a login request.
    fn credentials(&self) -> Result<Value> {
        let Some(file) = &self.password_file else {
            bail!("this command needs a login: give --password-file or --token");
        };
        let password = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        Ok(json!({"username": self.user, "password": password.trim_end_matches(['\r', '\n'])}))
    }
}

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::http::Client;

/// Where a server listens unless it is told otherwise.
const DEFAULT: &str = "http://127.0.0.1:8080";

/// Which server, and as whom.
#[derive(Debug, clap::Args)]
pub(crate) struct Login {
    /// The address of the server; http://127.0.0.1:8080 where it is needed and not given.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The account to log in as.
    #[arg(long, value_name = "NAME", default_value = "admin")]
    user: String,
    /// The file that holds the account's password.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    password_file: Option<PathBuf>,
    /// An access token or API key, instead of a password.
    #[arg(long)]
    token: Option<String>,
}

impl Login {
    /// A client for what needs no login.
    pub(crate) fn anonymous(&self) -> Client {
        Client::new(self.server.as_deref().unwrap_or(DEFAULT))
    }

    /// Whether a server was named.
    pub(crate) const fn names_server(&self) -> bool {
        self.server.is_some()
    }

    /// Whether it was told how.
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
        Ok(client.with_bearer(token.context("the server's answer to the login holds no access_token")?))
    }

    /// What a login sends.
    fn credentials(&self) -> Result<Value> {
        let Some(file) = &self.password_file else {
            bail!("this needs a login: give --password-file, or where it is enough --token");
        };
        let password = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        Ok(json!({"username": self.user, "password": password.trim_end_matches(['\r', '\n'])}))
    }
}

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use lkr_auth::FIRST_ADMIN;
use serde_json::{Value, json};

use crate::{
    connection::{DEFAULT_SERVER, SavedLogins, TOKEN_VARIABLE, URL_VARIABLE, variable},
    exit::{no_login, usage},
    http::Client,
};

/// The server and the account. The flags of a command that has commands of its own are theirs too. What the flags do not say comes from the environment, then from `lkr login`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Server and account")]
pub(crate) struct Login {
    /// Use the server at this address. [default: LKR_URL, else that of 'lkr login', else http://127.0.0.1:8080]
    #[arg(long, value_name = "URL", global = true)]
    server: Option<String>,
    /// Use this access token or API key. [default: LKR_TOKEN, else that of 'lkr login']
    #[arg(long, global = true)]
    token: Option<String>,
    /// Log in to this account with --password-file. [default: admin]
    #[arg(long, value_name = "NAME", global = true, requires = "password_file")]
    user: Option<String>,
    /// Log in with the password in this file, instead of a token.
    #[arg(long, value_name = "FILE", global = true, conflicts_with = "token")]
    password_file: Option<PathBuf>,
}

impl Login {
    /// The address of the server.
    pub(crate) fn address(&self) -> Result<String> {
        let named = match &self.server {
            Some(server) => Some(server.clone()),
            None => match variable(URL_VARIABLE) {
                Some(url) => Some(url),
                None => SavedLogins::read()?.default,
            },
        };
        named.map_or_else(|| Ok(DEFAULT_SERVER.to_owned()), |named| server_address(&named))
    }

    /// Whether a server is named by a flag.
    pub(crate) const fn has_server_flag(&self) -> bool {
        self.server.is_some()
    }

    /// Whether a server is named by a flag, the environment or `lkr login`.
    pub(crate) fn names_server(&self) -> Result<bool> {
        Ok(self.has_server_flag()
            || variable(URL_VARIABLE).is_some()
            || SavedLogins::read()?.default.is_some())
    }

    /// Whether a flag gives a credential.
    pub(crate) const fn has_credential_flag(&self) -> bool {
        self.password_file.is_some() || self.token.is_some()
    }

    /// A client without a login.
    pub(crate) fn anonymous(&self) -> Result<Client> {
        Ok(Client::new(&self.address()?))
    }

    /// A client with a credential, if one is given anywhere.
    pub(crate) fn client(&self) -> Result<Client> {
        let address = self.address()?;
        let client = Client::new(&address);
        if self.password_file.is_some() {
            let answer = client.post("/auth/login", &self.credentials()?)?;
            let token = answer.data.get("access_token").and_then(Value::as_str);
            return Ok(client.with_bearer(token.context("the login response has no access_token")?));
        }
        let given = self.token.clone().or_else(|| variable(TOKEN_VARIABLE));
        let token = match given {
            Some(token) => Some(token),
            None => SavedLogins::read()?.servers.remove(&address).map(|saved| saved.token),
        };
        Ok(match token {
            Some(token) => client.with_bearer(&token),
            None => client,
        })
    }

    /// A client that is logged in.
    pub(crate) fn log_in(&self) -> Result<Client> {
        let client = self.client()?;
        if client.has_credential() {
            return Ok(client);
        }
        Err(no_login(client.base()))
    }

    /// The body of a login request.
    fn credentials(&self) -> Result<Value> {
        let file = self.password_file.as_ref().context("no --password-file")?;
        let password = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
        let user = self.user.as_deref().unwrap_or(FIRST_ADMIN);
        Ok(json!({"username": user, "password": password.trim_end_matches(['\r', '\n'])}))
    }
}

/// An address with its scheme and without a slash at its end.
pub(crate) fn server_address(given: &str) -> Result<String> {
    let address = given.trim_end_matches('/');
    if address.starts_with("http://") || address.starts_with("https://") {
        return Ok(address.to_owned());
    }
    Err(usage(format!("{given} is no address of a server: it begins with http:// or https://")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_needs_a_scheme() {
        assert_eq!(server_address("https://kb.example.org/").unwrap(), "https://kb.example.org");
        assert!(server_address("kb.example.org").unwrap_err().to_string().contains("http://"));
    }
}

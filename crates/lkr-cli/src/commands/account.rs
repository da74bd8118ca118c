//! `lkr login` and `lkr logout`.

use std::{fs, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result};
use lkr_auth::FIRST_ADMIN;
use serde_json::{Value, json};

use crate::{
    commands::query::segment,
    connection::{Login, SavedLogin, SavedLogins, server_address},
    exit::not_found,
    http::{ApiError, Client},
    terminal::{OutputArgs, field, read_new_password, read_password},
};

/// The arguments of `lkr login`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without a terminal, passwords are lines of the input. The first login also sets a new password:\n\n\
                        \x20 printf '%s\\n' \"$(cat lkr-data/initial-admin-password)\" \\\n\
                        \x20     'my own long password' | lkr login"
)]
pub(crate) struct LoginArgs {
    /// The address of the server. [default: LKR_URL, else that of the last login, else http://127.0.0.1:8080]
    #[arg(value_name = "URL")]
    server: Option<String>,
    /// The same as URL, as for other commands.
    #[arg(long = "server", value_name = "URL", conflicts_with = "server")]
    named: Option<String>,
    /// The account.
    #[arg(long, value_name = "NAME", default_value = FIRST_ADMIN)]
    user: String,
    /// Read the password from this file. [default: asked for, or a line of the input]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Keep this API key instead of a new one, without a password.
    #[arg(long, conflicts_with_all = ["user", "password_file"])]
    token: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The arguments of `lkr logout`.
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {
    /// The address of the server. [default: that of the last login]
    #[arg(value_name = "URL")]
    server: Option<String>,
    /// The same as URL, as for other commands.
    #[arg(long = "server", value_name = "URL", conflicts_with = "server")]
    named: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Logs in, and keeps an API key of the account for this server.
pub(crate) fn log_in(args: &LoginArgs) -> Result<ExitCode> {
    let output = args.output.output();
    let server = match args.server.as_ref().or(args.named.as_ref()) {
        Some(server) => server_address(server)?,
        None => Login::default().address()?,
    };
    let client = Client::new(&server);
    // Before a key is made that could not be kept.
    let mut logins = SavedLogins::read()?;
    let login = match &args.token {
        Some(token) => {
            let account = client.clone().with_bearer(token).get("/auth/me")?.data;
            SavedLogin { username: field(&account, "username"), token: token.clone(), key_id: None }
        }
        None => new_key(&client, &args.user, &password(args)?)?,
    };
    let username = login.username.clone();
    logins.default = Some(server.clone());
    let former = logins.servers.insert(server.clone(), login.clone());
    let file = match logins.write() {
        Ok(file) => file,
        Err(error) => {
            delete_key(&client, &login);
            return Err(error);
        }
    };
    if let Some(former) = former {
        delete_key(&client, &former);
    }
    output.note(&format!("logged in to {server} as {username}; the key is in {}", file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Deletes the key on the server and the login on this machine.
pub(crate) fn log_out(args: &LogoutArgs) -> Result<ExitCode> {
    let output = args.output.output();
    let mut logins = SavedLogins::read()?;
    let server = match args.server.as_ref().or(args.named.as_ref()) {
        Some(server) => server_address(server)?,
        None => logins.default.clone().ok_or_else(|| not_found("there is no login"))?,
    };
    let login =
        logins.servers.remove(&server).ok_or_else(|| not_found(format!("there is no login to {server}")))?;
    if logins.default.as_ref() == Some(&server) {
        logins.default = logins.servers.keys().next().cloned();
    }
    logins.write()?;
    if let Some(key_id) = &login.key_id {
        let client = Client::new(&server).with_bearer(&login.token);
        if let Err(error) = client.delete(&format!("/auth/keys/{}", segment(key_id)))
            && let Some(warning) = warning_of(key_id, &error)
        {
            output.warn(&warning)?;
        }
    }
    output.note(&match &logins.default {
        Some(other) => format!("logged out of {server}; {other} is used now"),
        None => format!("logged out of {server}"),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn password(args: &LoginArgs) -> Result<String> {
    match &args.password_file {
        Some(file) => {
            let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
            Ok(text.trim_end_matches(['\r', '\n']).to_owned())
        }
        None => read_password(&format!("Password of {}", args.user), "the password is missing"),
    }
}

/// Logs in with a password, sets a new one if the account must, and exchanges the session for an API key.
fn new_key(client: &Client, username: &str, password: &str) -> Result<SavedLogin> {
    let body = json!({"username": username, "password": password});
    let mut session = client.post("/auth/login", &body)?.data;
    let is_pending = |session: &Value| {
        session.pointer("/user/must_change_password").and_then(Value::as_bool) == Some(true)
    };
    if is_pending(&session) {
        let missing = "the account needs a new password of 8 to 128 characters";
        let new = read_new_password(
            "The account needs a new password, of 8 to 128 characters. New password",
            missing,
        )?;
        let change = json!({"current_password": password, "new_password": new});
        session = with_session(client, &session).post("/auth/password", &change)?.data;
    }
    let client = with_session(client, &session);
    let name = format!("lkr login on {}", machine());
    let key = client.post("/auth/keys", &json!({"name": name}))?.data;
    // The key is not lost if this fails, and the session ends by itself.
    let _ = client.post("/auth/logout", &json!({}));
    let username = session.pointer("/user/username").and_then(Value::as_str).unwrap_or(username);
    Ok(SavedLogin {
        username: username.to_owned(),
        token: field(&key, "key"),
        key_id: Some(field(&key, "id")),
    })
}

/// Deletes the key of a login on the server. It may have ended already.
fn delete_key(client: &Client, login: &SavedLogin) {
    if let Some(key_id) = &login.key_id {
        let _ = client.clone().with_bearer(&login.token).delete(&format!("/auth/keys/{}", segment(key_id)));
    }
}

/// What to tell about a key that could not be deleted; `None` if the server has no such key.
fn warning_of(key_id: &str, error: &anyhow::Error) -> Option<String> {
    match error.downcast_ref() {
        Some(ApiError { code: Some(1004), .. }) => None,
        Some(ApiError { code: Some(1005), .. }) => Some(format!(
            "the server does not accept the key {key_id}; it is deleted or expired, or its account is disabled, and then it is valid again \
             once that is enabled"
        )),
        _ => Some(format!("the key {key_id} stays valid on the server: {error:#}")),
    }
}

fn with_session(client: &Client, session: &Value) -> Client {
    client.clone().with_bearer(&field(session, "access_token"))
}

/// The name of this machine; `this machine` if it has none.
pub(crate) fn machine() -> String {
    let name = fs::read_to_string("/etc/hostname").ok().map(|name| name.trim().to_owned());
    let from_system = ["COMPUTERNAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).or(from_system).unwrap_or_else(|| "this machine".to_owned())
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// A server that answers one request after another with these bodies; its address.
    fn server(bodies: [&'static str; 3]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        thread::spawn(move || {
            for body in bodies {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request: Vec<u8> = Vec::new();
                let mut buffer = [0_u8; 4096];
                while !request.ends_with(b"}") {
                    let length = stream.read(&mut buffer).unwrap();
                    assert!(length > 0, "the request ends with its body");
                    request.extend_from_slice(buffer.get(..length).unwrap());
                }
                let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}", body.len());
                write!(stream, "{head}\r\n\r\n{body}").unwrap();
            }
        });
        url
    }

    #[test]
    fn new_key_is_kept_if_the_session_cannot_be_ended() {
        let url = server([
            r#"{"code":0,"message":"ok","data":{"access_token":"t","user":{"username":"ada"}}}"#,
            r#"{"code":0,"message":"ok","data":{"id":"1","key":"lkr_secret"}}"#,
            r#"{"code":2000,"message":"the store is away"}"#,
        ]);
        let login = new_key(&Client::new(&url), "ada", "password").unwrap();
        assert_eq!((login.username.as_str(), login.token.as_str()), ("ada", "lkr_secret"));
        assert_eq!(login.key_id.as_deref(), Some("1"));
    }
}

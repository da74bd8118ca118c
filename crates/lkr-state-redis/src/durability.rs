//! Whether a server keeps what it acknowledges.

use deadpool_redis::redis::{Value, cmd};
use lkr_state::{Error, ErrorKind, Result};
use tokio::time::Instant;

use crate::{client::RedisClient, clock::after, reply};

const OPERATION: &str = "open";
/// The oldest major version whose scripts can be told apart by flags.
const OLDEST: u32 = 7;

/// The settings of a server that keeps what it acknowledges.
const WANTED: [(&str, &str); 4] = [
    ("appendonly", "yes"),
    ("appendfsync", "always"),
    // Otherwise nothing is written to the disk while the file is rewritten.
    ("no-appendfsync-on-rewrite", "no"),
    ("maxmemory-policy", "noeviction"),
];

/// Why acknowledged writes may get lost.
///
/// # Errors
/// `Invalid` if the server is too old, or if there are reasons and the configuration does not allow them.
pub(crate) async fn check(client: &RedisClient) -> Result<Vec<String>> {
    let mut reasons = Vec::new();
    let mut has_replicas = client.links().has_failover();
    match section(client, "server").await? {
        Some(server) => check_version(&server)?,
        None => reasons.push("the version cannot be read: the command INFO is refused".to_owned()),
    }
    match section(client, "replication").await? {
        Some(replication) => {
            has_replicas |= field(&replication, "connected_slaves").is_some_and(|n| n != "0");
        }
        None => reasons.push("the number of replicas cannot be read: the command INFO is refused".to_owned()),
    }
    reasons.extend(check_settings(client, has_replicas).await?);
    if has_replicas && client.config.wait_replicas == 0 {
        reasons.push(
            "it has replicas, and writes do not wait for any: set wait_replicas to 1 or more".to_owned(),
        );
    }
    if reasons.is_empty() || client.config.allow_weak_durability {
        return Ok(reasons);
    }
    let message = format!(
        "Redis may lose acknowledged writes: {}. Change its settings, or accept this with allow_weak_durability",
        reasons.join("; ")
    );
    Err(Error::new(ErrorKind::Invalid, OPERATION, message))
}

fn check_version(server: &str) -> Result<()> {
    let version = field(server, "redis_version").unwrap_or("unknown");
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major >= OLDEST) {
        return Ok(());
    }
    let message = format!("the version of Redis is {version}; {OLDEST}.0 or later is needed");
    Err(Error::new(ErrorKind::Invalid, OPERATION, message))
}

async fn check_settings(client: &RedisClient, has_replicas: bool) -> Result<Vec<String>> {
    let mut reasons = Vec::new();
    for (name, expected) in WANTED {
        match setting(client, name).await? {
            Some(value) if value == expected => {}
            Some(value) => reasons.push(format!("{name} is {value} instead of {expected}")),
            None => {
                let reason =
                    "its settings cannot be read: the command CONFIG GET is refused, as managed services do";
                return Ok(vec![reason.to_owned()]);
            }
        }
    }
    if has_replicas && setting(client, "min-replicas-to-write").await?.is_none_or(|value| value == "0") {
        reasons.push("it has replicas, and min-replicas-to-write is 0 instead of 1 or more".to_owned());
    }
    Ok(reasons)
}

/// The value of a setting; `None` if the server does not say.
async fn setting(client: &RedisClient, name: &str) -> Result<Option<String>> {
    let mut command = cmd("CONFIG");
    command.arg("GET").arg(name);
    Ok(match refusable(client, command).await? {
        Some(Value::Array(parts)) => parts.get(1).and_then(reply::text),
        Some(Value::Map(pairs)) => pairs.first().and_then(|(_, value)| reply::text(value)),
        _ => None,
    })
}

/// A section of INFO; `None` if the server does not say.
async fn section(client: &RedisClient, name: &str) -> Result<Option<String>> {
    let mut command = cmd("INFO");
    command.arg(name);
    Ok(refusable(client, command).await?.as_ref().and_then(reply::text))
}

/// The answer of a command; `None` if the server refuses it.
async fn refusable(client: &RedisClient, command: deadpool_redis::redis::Cmd) -> Result<Option<Value>> {
    // Opening may take as long as a write: the server may be starting.
    let deadline = after(client.config.write_timeout);
    loop {
        match client.command_once(&command, after(client.config.command_timeout)).await {
            Ok(value) => return Ok(Some(value)),
            Err(failure) if failure.is_refusal => return Ok(None),
            Err(failure) if failure.is_temporary && Instant::now() < deadline => {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
            Err(failure) => return Err(failure.into_error(OPERATION)),
        }
    }
}

fn field<'a>(section: &'a str, name: &str) -> Option<&'a str> {
    let lines = section.lines().filter_map(|line| line.split_once(':'));
    lines.filter(|(key, _)| *key == name).map(|(_, value)| value.trim()).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_before_version_7_are_refused_by_name() {
        for version in ["6.2.14", "5.0.0", "none"] {
            let error = check_version(&format!("# Server\r\nredis_version:{version}\r\n")).unwrap_err();
            assert!(error.to_string().contains(version), "{error}");
        }
        check_version("# Server\r\nredis_version:7.0.15\r\nredis_git_sha1:0\r\n").unwrap();
        check_version("redis_version:10.1.0\r\n").unwrap();
    }
}

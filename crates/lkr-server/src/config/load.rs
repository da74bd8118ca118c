//! Loads the configuration from its four sources.

use std::{
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    effective::Config,
    keys::{ConfigKey, KEYS, ValueKind, Visibility},
};

/// The default configuration file.
const DEFAULT_FILE: &str = "lkr.toml";

/// Variables of the command line, which often stand in the same environment.
const CLIENT_VARIABLES: [&str; 2] = ["LKR_URL", "LKR_TOKEN"];

/// The subcommand for an operator who is locked out.
const RESET_ADMIN: &str = "reset-admin";

/// The sources of a configuration.
#[derive(Debug, Clone, Default)]
pub struct ConfigSources {
    /// The working directory.
    pub folder: PathBuf,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The command line, starting with the program's name.
    pub arguments: Vec<OsString>,
}

impl ConfigSources {
    /// Those of this process, with the given arguments.
    #[must_use]
    pub fn of_process(arguments: Vec<OsString>) -> Self {
        Self { folder: PathBuf::new(), environment: std::env::vars_os().collect(), arguments }
    }
}

/// A loaded configuration, and what the command line asks for.
#[derive(Debug, Clone)]
pub struct LoadedConfig {
    /// The effective configuration.
    pub config: Config,
    /// Warnings about the sources.
    pub warnings: Vec<String>,
    /// Whether to print the configuration and exit.
    pub check_only: bool,
    /// Whether to reset the account `admin` and exit.
    pub reset_admin: bool,
    /// The help or version text to print before exiting.
    pub print: Option<String>,
}

/// Reads the configuration.
///
/// # Errors
/// One line that names the key, its source and what is wrong.
pub fn load(sources: &ConfigSources) -> Result<LoadedConfig> {
    let mut loaded = LoadedConfig {
        config: Config::default(),
        warnings: Vec::new(),
        check_only: false,
        reset_admin: false,
        print: None,
    };
    let flags = match command().try_get_matches_from(&sources.arguments) {
        Ok(flags) => flags,
        Err(error) if error.exit_code() == 0 => {
            loaded.print = Some(error.to_string());
            return Ok(loaded);
        }
        Err(error) => return Err(WrongArgument::of_parser(&error).into()),
    };
    read_file(&mut loaded.config, sources, flags.get_one("config"))?;
    read_environment(&mut loaded, sources)?;
    read_flags(&mut loaded.config, &flags)?;
    loaded.reset_admin = flags.subcommand_name() == Some(RESET_ADMIN);
    loaded.config.check_files().map_err(|reason| anyhow!(reason))?;
    loaded.config.check_stores().map_err(|reason| anyhow!(reason))?;
    loaded.warnings.extend(loaded.config.unused_settings());
    loaded.config.check_collector().map_err(|reason| anyhow!(reason))?;
    loaded.check_only = flags.get_flag("check-config");
    Ok(loaded)
}

fn set(config: &mut Config, key: &ConfigKey, source: &str, value: &str) -> Result<()> {
    (key.set)(config, value).map_err(|reason| match key.visibility {
        Visibility::Plain => anyhow!("bad value {value:?} for {source}: {reason}"),
        // The value may contain a secret.
        Visibility::Secret | Visibility::Url => anyhow!("bad value for {source}: {reason}"),
    })
}

fn read_file(config: &mut Config, sources: &ConfigSources, named: Option<&PathBuf>) -> Result<()> {
    let path = sources.folder.join(named.map_or(Path::new(DEFAULT_FILE), PathBuf::as_path));
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let shown = path.display();
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line =
            error.span().and_then(|span| text.get(..span.start)).map_or(1, |t| t.matches('\n').count() + 1);
        anyhow!("{shown}, line {line}: {}", error.message().lines().next().unwrap_or("not TOML"))
    })?;
    for (name, value) in &table {
        let key = KEYS.iter().find(|key| key.name == name);
        let key = key.ok_or_else(|| anyhow!("unknown key {name} in {shown}"))?;
        let source = format!("{name} in {shown}");
        let value =
            toml_text(key.kind, value).map_err(|reason| anyhow!("bad value for {source}: {reason}"))?;
        set(config, key, &source, &value)?;
    }
    Ok(())
}

fn toml_text(kind: ValueKind, value: &toml::Value) -> Result<String, String> {
    use toml::Value;
    match (kind, value) {
        (ValueKind::Text | ValueKind::List, Value::String(text)) => Ok(text.clone()),
        (ValueKind::Integer, Value::Integer(number)) => Ok(number.to_string()),
        (ValueKind::Boolean, Value::Boolean(truth)) => Ok(truth.to_string()),
        (ValueKind::List, Value::Array(items)) => {
            let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(",")).ok_or_else(|| "expected a list of strings".to_owned())
        }
        (ValueKind::Text, _) => Err("expected a string".to_owned()),
        (ValueKind::Integer, _) => Err("expected a whole number".to_owned()),
        (ValueKind::Boolean, _) => Err("expected true or false".to_owned()),
        (ValueKind::List, _) => Err("expected a list of strings".to_owned()),
    }
}

fn read_environment(loaded: &mut LoadedConfig, sources: &ConfigSources) -> Result<()> {
    for (name, value) in &sources.environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with("LKR_")) else { continue };
        if CLIENT_VARIABLES.contains(&name) {
            continue;
        }
        let Some(key) = KEYS.iter().find(|key| key.env() == name) else {
            loaded.warnings.push(format!("unknown key {name} in the environment"));
            continue;
        };
        let value = value.to_str().ok_or_else(|| anyhow!("bad value for {name}: expected UTF-8"))?;
        set(&mut loaded.config, key, name, value)?;
    }
    Ok(())
}

fn read_flags(config: &mut Config, flags: &ArgMatches) -> Result<()> {
    for key in KEYS {
        if let Some(value) = flags.get_one::<String>(key.name) {
            set(config, key, &format!("--{}", key.flag()), value)
                .map_err(|error| WrongArgument(error.to_string()))?;
        }
    }
    Ok(())
}

/// The definition of the command line.
#[must_use]
pub fn command() -> Command {
    let keys = KEYS.iter().map(|key| {
        let arg = Arg::new(key.name).long(key.flag()).help(key.help).value_name("VALUE").global(true);
        if key.kind == ValueKind::Boolean {
            arg.num_args(0..=1).default_missing_value("true")
        } else {
            arg.num_args(1)
        }
    });
    Command::new("lkr-server")
        .about("Layered knowledge retrieval over HTTP")
        .version(env!("CARGO_PKG_VERSION"))
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .global(true)
                .help("Configuration file to read instead of lkr.toml"),
        )
        .arg(
            Arg::new("check-config")
                .long("check-config")
                .action(ArgAction::SetTrue)
                .help("Print the effective configuration with secrets masked, and exit"),
        )
        .args(keys)
        .subcommand(Command::new(RESET_ADMIN).about(
            "Reset the account admin while no server runs: enable it, end its sessions and API keys, and write a new \
             password to <data_dir>/initial-admin-password",
        ))
}

/// An error of the arguments of the program, as opposed to a file, the environment, or the machine.
#[derive(Debug)]
pub struct WrongArgument(String);

impl fmt::Display for WrongArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongArgument {}

impl WrongArgument {
    /// The first line of clap's message, which names the argument.
    fn of_parser(error: &clap::Error) -> Self {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Self(line.strip_prefix("error: ").unwrap_or(line).to_owned())
    }
}

#[cfg(test)]
mod tests;

//! The four sources, one over the other.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::{
    Config,
    keys::{KEYS, Key, Kind, Show},
};

/// The file that is read when none is named.
const FILE: &str = "lkr.toml";

/// The command for an admin who is locked out.
const RESET_ADMIN: &str = "reset-admin";

/// Where a configuration comes from.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The working folder.
    pub folder: PathBuf,
    /// The environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The arguments, the program's name first.
    pub arguments: Vec<OsString>,
}

impl Sources {
    /// Those of this process, with the given arguments.
    #[must_use]
    pub fn of_process(arguments: Vec<OsString>) -> Self {
        Self { folder: PathBuf::new(), environment: std::env::vars_os().collect(), arguments }
    }
}

/// What was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What is in force.
    pub config: Config,
    /// What was met that does no harm.
    pub warnings: Vec<String>,
    /// Whether the configuration shall be shown and nothing be started.
    pub check_only: bool,
    /// Whether the account `admin` shall be let in again, and nothing be started.
    pub reset_admin: bool,
    /// A text to print in place of anything else: the help or the version.
    pub print: Option<String>,
}

/// Reads the configuration.
///
/// # Errors
/// One line that names the key, where it stands and what is wrong with it.
pub fn load(sources: &Sources) -> Result<Loaded> {
    let mut loaded = Loaded {
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
        Err(error) => return Err(flag_error(&error)),
    };
    read_file(&mut loaded.config, sources, flags.get_one("config"))?;
    read_environment(&mut loaded, sources)?;
    read_flags(&mut loaded.config, &flags)?;
    loaded.reset_admin = flags.subcommand_name() == Some(RESET_ADMIN);
    loaded.config.check_built_in().map_err(|reason| anyhow!(reason))?;
    loaded.check_only = flags.get_flag("check-config");
    Ok(loaded)
}

fn set(config: &mut Config, key: &Key, place: &str, value: &str) -> Result<()> {
    (key.set)(config, value).map_err(|reason| match key.show {
        Show::Plain => anyhow!("bad value {value:?} for {place}: {reason}"),
        // Part of it may be a secret.
        Show::Secret | Show::Url => anyhow!("bad value for {place}: {reason}"),
    })
}

fn read_file(config: &mut Config, sources: &Sources, named: Option<&PathBuf>) -> Result<()> {
    let path = sources.folder.join(named.map_or(Path::new(FILE), PathBuf::as_path));
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
        let place = format!("{name} in {shown}");
        let value =
            toml_text(key.kind, value).map_err(|reason| anyhow!("bad value for {place}: {reason}"))?;
        set(config, key, &place, &value)?;
    }
    Ok(())
}

fn toml_text(kind: Kind, value: &toml::Value) -> Result<String, String> {
    use toml::Value;
    match (kind, value) {
        (Kind::Text | Kind::List, Value::String(text)) => Ok(text.clone()),
        (Kind::Integer, Value::Integer(number)) => Ok(number.to_string()),
        (Kind::Boolean, Value::Boolean(truth)) => Ok(truth.to_string()),
        (Kind::List, Value::Array(items)) => {
            let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
            texts.map(|texts| texts.join(",")).ok_or_else(|| "expected a list of strings".to_owned())
        }
        (Kind::Text, _) => Err("expected a string".to_owned()),
        (Kind::Integer, _) => Err("expected a whole number".to_owned()),
        (Kind::Boolean, _) => Err("expected true or false".to_owned()),
        (Kind::List, _) => Err("expected a list of strings".to_owned()),
    }
}

fn read_environment(loaded: &mut Loaded, sources: &Sources) -> Result<()> {
    for (name, value) in &sources.environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with("LKR_")) else { continue };
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
            set(config, key, &format!("--{}", key.flag()), value)?;
        }
    }
    Ok(())
}

fn command() -> Command {
    let keys = KEYS.iter().map(|key| {
        let arg = Arg::new(key.name).long(key.flag()).help(key.help).value_name("VALUE").global(true);
        if key.kind == Kind::Boolean {
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
                .help("Configuration file in place of lkr.toml"),
        )
        .arg(
            Arg::new("check-config")
                .long("check-config")
                .action(ArgAction::SetTrue)
                .help("Print what is in force, secrets masked, and exit"),
        )
        .args(keys)
        .subcommand(Command::new(RESET_ADMIN).about(
            "Enables the account admin of a data folder that no server has open, ends its sessions and keys, and \
             writes a new password to <data_dir>/initial-admin-password",
        ))
}

/// The first line of what clap has to say, which names the argument.
fn flag_error(error: &clap::Error) -> anyhow::Error {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    anyhow!("{}", line.strip_prefix("error: ").unwrap_or(line))
}

#[cfg(test)]
mod tests;

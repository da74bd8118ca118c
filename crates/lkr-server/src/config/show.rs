use std::fmt::Write as _;

use super::{
    Config,
    keys::{KEYS, Kind, Show},
};

/// What is in force, as a configuration file would say it, secrets masked. Keys without a value are comments.
#[must_use]
pub fn show(config: &Config) -> String {
    let mut text = String::new();
    for key in KEYS {
        let value = (key.get)(config).map(|value| mask(key.show, &value));
        // Writing to a string cannot fail.
        let _ = match (value, key.kind) {
            (None, _) => writeln!(text, "# {} is not set", key.name),
            (Some(value), Kind::Integer | Kind::Boolean) => writeln!(text, "{} = {value}", key.name),
            (Some(value), Kind::Text | Kind::List) => {
                writeln!(text, "{} = {}", key.name, toml::Value::String(value))
            }
        };
    }
    text
}

fn mask(show: Show, value: &str) -> String {
    match show {
        Show::Plain => value.to_owned(),
        Show::Secret => "********".to_owned(),
        Show::Url => {
            match value.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
                Some((scheme, (_, host))) => format!("{scheme}://********@{host}"),
                None => value.to_owned(),
            }
        }
    }
}

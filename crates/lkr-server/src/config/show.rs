//! Prints the configuration.

use std::fmt::Write as _;

use lkr_settings::MASK;

use super::{
    effective::Config,
    keys::{KEYS, ValueKind, Visibility},
};

/// The effective configuration in the format of the configuration file, with secrets masked. Keys without a value become
/// comments.
#[must_use]
pub fn show(config: &Config) -> String {
    let mut text = String::new();
    for key in KEYS {
        let value = (key.get)(config).map(|value| mask(key.visibility, &value));
        // Writing to a string cannot fail.
        let _ = match (value, key.kind) {
            (None, _) => writeln!(text, "# {} is not set", key.name),
            (Some(value), ValueKind::Integer | ValueKind::Boolean) => {
                writeln!(text, "{} = {value}", key.name)
            }
            (Some(value), ValueKind::Text | ValueKind::List) => {
                writeln!(text, "{} = {}", key.name, toml::Value::String(value))
            }
        };
    }
    text
}

fn mask(visibility: Visibility, value: &str) -> String {
    match visibility {
        Visibility::Plain => value.to_owned(),
        Visibility::Secret => MASK.to_owned(),
        Visibility::Url => masked_url(value),
    }
}

/// A URL with its user information masked, and the parameters of its query that are passwords.
pub(crate) fn masked_url(url: &str) -> String {
    let user = url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)));
    let url = match user {
        Some((scheme, (_, host))) => format!("{scheme}://{MASK}@{host}"),
        None => url.to_owned(),
    };
    let masked = |parameter: &str| match parameter.split_once('=') {
        Some((name, _)) if name.contains("password") => format!("{name}={MASK}"),
        _ => parameter.to_owned(),
    };
    match url.split_once('?') {
        Some((address, query)) => {
            format!("{address}?{}", query.split('&').map(masked).collect::<Vec<_>>().join("&"))
        }
        None => url,
    }
}

//! The table of keys for the documentation.

use super::{
    effective::Config,
    keys::{ConfigKey, KEYS, ValueKind},
};

/// A configuration key as the documentation shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyReference {
    /// The name in the environment. The name in the file is its end, in small letters.
    pub variable: String,
    /// The type of a value.
    pub kind: &'static str,
    /// The default: a value, or words.
    pub default: KeyDefault,
    /// What the key means.
    pub meaning: &'static str,
}

/// The default of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyDefault {
    /// A value. `<data_dir>` stands for the data folder.
    Value(String),
    /// A description.
    Described(&'static str),
}

/// All keys, in the order of `lkr-server --help`.
#[must_use]
pub fn reference() -> Vec<KeyReference> {
    KEYS.iter().map(describe).collect()
}

fn describe(key: &ConfigKey) -> KeyReference {
    let (meaning, described) = split_help(key.help);
    let default = match described {
        Some(described) => KeyDefault::Described(described),
        None => (key.get)(&Config::default())
            .filter(|value| !value.is_empty())
            .map_or(KeyDefault::Described("none"), KeyDefault::Value),
    };
    let kind = match key.kind {
        ValueKind::Text => "text",
        ValueKind::Integer => "integer",
        ValueKind::Boolean => "boolean",
        ValueKind::List => "list",
    };
    KeyReference { variable: key.env(), kind, default, meaning }
}

/// Splits the end `; … by default` off a help text.
fn split_help(help: &'static str) -> (&'static str, Option<&'static str>) {
    match help.rsplit_once("; ") {
        Some((meaning, last)) if last.contains(" by default") => (meaning, last.split(" by default").next()),
        _ => (help, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_is_split_at_its_default() {
        assert_eq!(split_help("A folder; <data_dir>/x by default"), ("A folder", Some("<data_dir>/x")));
        assert_eq!(split_help("A model; y by default, if it exists"), ("A model", Some("y")));
        assert_eq!(split_help("A time; 0 for none"), ("A time; 0 for none", None));
    }
}

//! The table of keys in docs/configuration.md.

use std::fs;

use lkr_server::config::{KeyDefault, KeyReference, reference};

use super::{check, page, with_section};

#[test]
fn reference_of_configuration_lists_every_key() {
    let name = "configuration.md";
    let page = fs::read_to_string(page(name)).unwrap();
    check(name, &with_section(&page, "keys", &table(&reference())));
}

fn table(keys: &[KeyReference]) -> String {
    let mut text = "| key | type | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in keys {
        let KeyReference { variable, kind, meaning, .. } = key;
        text += &format!("| `{variable}` | {kind} | {} | {} |\n", default(key), escaped(meaning));
    }
    text
}

/// The default as Markdown. The data folder is named as such.
fn default(key: &KeyReference) -> String {
    match &key.default {
        KeyDefault::Value(value) if key.variable == "LKR_DATA_DIR" => format!("`{value}`"),
        KeyDefault::Value(value) => format!("`{}`", value.replace("./lkr-data/", "<data_dir>/")),
        KeyDefault::Described(words) if words.starts_with('<') => format!("`{words}`"),
        KeyDefault::Described(words) => (*words).to_owned(),
    }
}

/// Text in which no part looks like an HTML element.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;")
}

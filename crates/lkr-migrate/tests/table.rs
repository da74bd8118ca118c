//! The table of records against the sources: whoever adds a key must decide what a migration does with it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::string_slice,
    clippy::indexing_slicing,
    reason = "a test"
)]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use lkr_migrate::{TABLE, row_of};

/// Crates that write no records of a knowledge base, or only by way of others.
const WITHOUT_RECORDS: &[&str] = &[
    // Doubles and stores of any records.
    "lkr-state-redis",
    "lkr-store-lmdb",
    // Above the libraries, or for tests.
    "lkr",
    "lkr-cli",
    "lkr-doctor",
    "lkr-mcp",
    "lkr-migrate",
    "lkr-server",
    "lkr-test-qdrant",
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The crates that depend on lkr-state and may write records.
fn writers() -> Vec<String> {
    let names =
        fs::read_dir(crates()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let writes = |name: &String| {
        let manifest = fs::read_to_string(crates().join(name).join("Cargo.toml")).unwrap_or_default();
        let dependencies = manifest.split("[dev-dependencies]").next().unwrap();
        (dependencies.contains("\nlkr-state.")
            || dependencies.contains("\nlkr-state ")
            || name == "lkr-state")
            && !WITHOUT_RECORDS.contains(&name.as_str())
    };
    names.filter(writes).collect()
}

/// The source files without tests.
fn sources(folder: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() && name != "tests" && name != "conformance" {
            sources(&path, into);
        } else if name.ends_with(".rs") && !["tests.rs", "conformance.rs"].contains(&name.as_str()) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
            into.push((path, code));
        }
    }
}

/// The string literals of a line that is no comment.
fn literals(line: &str) -> impl Iterator<Item = &str> {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    code.split('"').skip(1).step_by(2)
}

/// The part of a literal that is a key or a prefix: what is before the first placeholder.
fn prefix(literal: &str) -> Option<&str> {
    let prefix = literal.split('{').next().unwrap();
    let is_key = prefix.len() > 1
        && prefix.starts_with(|c: char| c.is_ascii_lowercase())
        && prefix.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'/'));
    is_key.then_some(prefix)
}

/// Whether a literal is a key without `/`: a constant of a file of keys and records, or one that is called so.
fn is_plain_key(path: &Path, line: &str) -> bool {
    let file = path.file_name().unwrap().to_str().unwrap();
    let is_constant = line.contains("const ") && line.contains(": &str = ");
    is_constant && (["key.rs", "records.rs", "peers.rs"].contains(&file) || line.contains(" KEY:"))
}

/// The keys and prefixes that a crate writes.
fn keys(name: &str) -> BTreeSet<String> {
    let mut files = Vec::new();
    sources(&crates().join(name).join("src"), &mut files);
    let mut keys = BTreeSet::new();
    for (path, code) in files {
        for line in code.lines() {
            for literal in literals(line) {
                let Some(prefix) = prefix(literal) else { continue };
                let is_prefix = prefix.ends_with('/') && !prefix.contains("//");
                if is_prefix || is_plain_key(&path, line) {
                    keys.insert(prefix.to_owned());
                }
            }
        }
    }
    keys
}

/// Whether each key with this prefix is in a row: the row is the prefix or shorter, or divides it further.
fn is_covered(key: &str) -> bool {
    row_of(key).is_some() || (key.ends_with('/') && TABLE.iter().any(|row| row.key.starts_with(key)))
}

#[test]
fn table_has_each_key_that_lkr_writes() {
    let (mut missing, mut found) = (Vec::new(), BTreeSet::new());
    for name in writers() {
        for key in keys(&name) {
            if !is_covered(&key) {
                missing.push(format!("{name}: {key}"));
            }
            found.insert(key);
        }
    }
    assert!(
        missing.is_empty(),
        "the table in src/table.rs lacks rows; decide what is done with:\n{}",
        missing.join("\n")
    );
    // The search finds what the table has, so it would find a key that is added.
    let unseen: Vec<_> =
        TABLE.iter().map(|row| row.key).filter(|key| !found.contains(*key) && *key != "migration").collect();
    assert!(unseen.is_empty(), "nothing writes {unseen:?}, or the test does not find it");
}

#[test]
fn writers_are_the_crates_with_records() {
    let writers = writers();
    for name in ["lkr-auth", "lkr-catalog", "lkr-settings", "lkr-spaces", "lkr-state", "lkr-webhooks"] {
        assert!(writers.iter().any(|writer| writer == name), "{name} is not among {writers:?}");
    }
}

/// The crates above the libraries change records through them alone, so that the search need not read their literals.
#[test]
fn crates_above_the_libraries_write_no_records() {
    for name in ["lkr", "lkr-doctor", "lkr-mcp", "lkr-server"] {
        let mut files = Vec::new();
        sources(&crates().join(name).join("src"), &mut files);
        for (path, code) in files {
            for write in ["Write::put", "Write::increment"] {
                assert!(!code.contains(write), "{}: {write}", path.display());
            }
        }
    }
}

#[test]
fn key_that_is_added_would_be_missed() {
    assert!(!is_covered("new-things/"));
    assert!(!is_covered("generations"));
    assert!(is_covered("auth/"));
    assert!(is_covered("task-in/space/"));
    assert_eq!(literals(r#"    format!("new-things/{id}")"#).filter_map(prefix).next(), Some("new-things/"));
    assert_eq!(literals(r#"    // "new-things/{id}""#).next(), None);
}

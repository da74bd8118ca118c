//! The direction of dependencies: inward, as docs/ARCHITECTURE.md shows it.

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// The crates of this workspace that each crate may depend on, directly or indirectly. Only the facade depends on backends.
const MAY_REACH: &[(&str, &[&str])] = &[
    ("lkr-archive", &["lkr-domain"]),
    ("lkr-auth", &["lkr-domain", "lkr-state", "lkr-threads"]),
    ("lkr-blobs-s3", &["lkr-domain", "lkr-sealing"]),
    ("lkr-catalog", &["lkr-domain", "lkr-state", "lkr-vectors"]),
    ("lkr-console", &[]),
    (
        "lkr-doctor",
        &[
            "lkr-catalog",
            "lkr-domain",
            "lkr-ingest",
            "lkr-layers",
            "lkr-models",
            "lkr-parsers",
            "lkr-spaces",
            "lkr-state",
            "lkr-taxonomy",
            "lkr-text",
            "lkr-vectors",
        ],
    ),
    ("lkr-domain", &[]),
    ("lkr-eval", &["lkr-domain"]),
    ("lkr-fail-points", &[]),
    (
        "lkr-ingest",
        &[
            "lkr-catalog",
            "lkr-domain",
            "lkr-layers",
            "lkr-models",
            "lkr-parsers",
            "lkr-state",
            "lkr-taxonomy",
            "lkr-text",
            "lkr-vectors",
        ],
    ),
    ("lkr-layers", &["lkr-domain", "lkr-text"]),
    ("lkr-migrate", &["lkr-catalog", "lkr-domain", "lkr-state", "lkr-vectors"]),
    ("lkr-models", &["lkr-domain", "lkr-text"]),
    ("lkr-models-local", &["lkr-domain", "lkr-models", "lkr-text", "lkr-threads"]),
    ("lkr-models-remote", &["lkr-domain", "lkr-models", "lkr-outgoing", "lkr-sealing", "lkr-text"]),
    ("lkr-ocr-tesseract", &["lkr-domain", "lkr-parsers"]),
    ("lkr-parsers", &["lkr-domain"]),
    ("lkr-parsers-docx", &["lkr-domain", "lkr-parsers"]),
    ("lkr-parsers-html", &["lkr-domain", "lkr-parsers"]),
    ("lkr-parsers-pdf", &["lkr-domain", "lkr-parsers"]),
    ("lkr-outgoing", &["lkr-domain"]),
    (
        "lkr-retrieval",
        &["lkr-catalog", "lkr-domain", "lkr-layers", "lkr-models", "lkr-state", "lkr-text", "lkr-vectors"],
    ),
    ("lkr-sandbox", &["lkr-domain", "lkr-parsers"]),
    ("lkr-sealing", &["lkr-domain"]),
    ("lkr-settings", &["lkr-domain", "lkr-sealing", "lkr-state"]),
    ("lkr-spaces", &["lkr-domain", "lkr-state"]),
    ("lkr-state", &["lkr-domain"]),
    ("lkr-state-fallback", &["lkr-domain", "lkr-state"]),
    ("lkr-state-redis", &["lkr-domain", "lkr-state"]),
    ("lkr-store-lmdb", &["lkr-domain", "lkr-state", "lkr-threads", "lkr-vectors"]),
    ("lkr-sync", &["lkr-domain"]),
    ("lkr-swagger-ui", &[]),
    ("lkr-taxonomy", &["lkr-domain", "lkr-models", "lkr-text"]),
    ("lkr-test-history", &[]),
    ("lkr-test-provider", &["lkr-domain", "lkr-models", "lkr-text"]),
    ("lkr-test-qdrant", &["tonic"]),
    ("lkr-test-support", &[]),
    ("lkr-text", &[]),
    ("lkr-threads", &[]),
    ("lkr-vectors", &["lkr-domain"]),
    ("lkr-vectors-qdrant", &["lkr-domain", "lkr-vectors", "tonic"]),
    (
        "lkr-webhooks",
        &["lkr-catalog", "lkr-domain", "lkr-outgoing", "lkr-sealing", "lkr-state", "lkr-vectors"],
    ),
];

/// The crates above the libraries, each with the crates that it may depend on besides the libraries: our own and those of
/// [`FOREIGN`].
const OUTER: &[(&str, &[&str])] = &[
    ("lkr", &[]),
    ("lkr-mcp", &["lkr"]),
    ("lkr-cli", &["lkr", "lkr-mcp", "clap"]),
    ("lkr-server", &["lkr", "lkr-mcp", "actix-web", "actix-http", "clap", "tonic", "tracing-subscriber"]),
];

/// A crate that every library may depend on: it does nothing outside tests.
const ALL_MAY_REACH: &str = "lkr-fail-points";

/// What no library may reach unless its row says so: the server's framework, command lines, other backends' clients.
const FOREIGN: &[&str] = &["actix-web", "actix-http", "clap", "tonic", "tracing-subscriber"];

/// Fails if a crate depends on a crate that it must not.
pub(crate) fn check() -> Result<()> {
    for (name, allowed) in MAY_REACH {
        check_library(name, allowed)?;
    }
    for (name, allowed) in OUTER {
        check_outer(name, allowed)?;
    }
    Ok(())
}

fn check_library(name: &str, allowed: &[&str]) -> Result<()> {
    for dependency in tree(name)? {
        let ours = dependency == "lkr" || dependency.starts_with("lkr-");
        let may = dependency == name || dependency == ALL_MAY_REACH || allowed.contains(&dependency.as_str());
        ensure!(!ours || may, "{name} depends on {dependency}, which is an outer crate");
        let is_foreign = FOREIGN.contains(&dependency.as_str()) && !allowed.contains(&dependency.as_str());
        ensure!(!is_foreign, "{name} reaches {dependency}");
    }
    Ok(())
}

/// The outer crates may depend on any library, but only on the listed ones of each other and of [`FOREIGN`].
fn check_outer(name: &str, allowed: &[&str]) -> Result<()> {
    for dependency in tree(name)? {
        let restricted = FOREIGN.contains(&dependency.as_str())
            || OUTER.iter().any(|(outer, _)| *outer == dependency && *outer != name);
        ensure!(!restricted || allowed.contains(&dependency.as_str()), "{name} reaches {dependency}");
    }
    Ok(())
}

/// The names of all packages in the normal dependency tree of a package.
fn tree(package: &str) -> Result<Vec<String>> {
    let arguments =
        ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--package", package];
    let output = cargo(&arguments)?.output().context("cannot run cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::root;

    /// The crates in the folders, as the code map writes them.
    fn crates() -> Vec<String> {
        ["crates", "bins"]
            .into_iter()
            .flat_map(|group| {
                let entries = fs::read_dir(root().unwrap().join(group)).unwrap();
                entries.map(move |entry| format!("{group}/{}", entry.unwrap().file_name().to_str().unwrap()))
            })
            .collect()
    }

    #[test]
    fn code_map_lists_exactly_the_crates_that_exist() {
        let map = fs::read_to_string(root().unwrap().join("docs/ARCHITECTURE.md")).unwrap();
        let is_crate = |word: &&str| {
            (word.starts_with("crates/") || word.starts_with("bins/")) && word.matches('/').count() == 1
        };
        let named: Vec<&str> = map.split('`').filter(is_crate).collect();
        let crates = crates();
        for name in &crates {
            assert!(named.contains(&name.as_str()), "{name} is not on the map");
        }
        for name in named {
            assert!(crates.iter().any(|known| known == name), "the map names {name}, which is not there");
        }
    }

    #[test]
    fn every_library_has_a_dependency_rule() {
        for name in crates() {
            let library = name.strip_prefix("crates/");
            let ruled =
                library.is_none_or(|name| MAY_REACH.iter().chain(OUTER).any(|(ruled, _)| *ruled == name));
            assert!(ruled, "{name} has no rule for what it may reach");
        }
    }
}

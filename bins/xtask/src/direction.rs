//! The direction of dependencies: inward, as docs/ARCHITECTURE.md draws it.

use anyhow::{Context, Result, ensure};

use crate::cargo;

/// What each crate of ours may reach among ours, directly or not. A backend is reached by the facade alone.
const MAY_REACH: &[(&str, &[&str])] = &[
    ("lkr-auth", &["lkr-domain", "lkr-state"]),
    ("lkr-catalog", &["lkr-domain", "lkr-state", "lkr-vectors"]),
    ("lkr-domain", &[]),
    (
        "lkr-ingest",
        &[
            "lkr-catalog",
            "lkr-domain",
            "lkr-layers",
            "lkr-models",
            "lkr-parsers",
            "lkr-state",
            "lkr-text",
            "lkr-vectors",
        ],
    ),
    ("lkr-layers", &["lkr-domain", "lkr-text"]),
    ("lkr-models", &["lkr-domain", "lkr-text"]),
    ("lkr-models-local", &["lkr-domain", "lkr-models", "lkr-text"]),
    ("lkr-parsers", &["lkr-domain"]),
    (
        "lkr-retrieval",
        &["lkr-catalog", "lkr-domain", "lkr-layers", "lkr-models", "lkr-state", "lkr-text", "lkr-vectors"],
    ),
    ("lkr-state", &["lkr-domain"]),
    ("lkr-store-lmdb", &["lkr-domain", "lkr-state", "lkr-vectors"]),
    ("lkr-text", &[]),
    ("lkr-vectors", &["lkr-domain"]),
];

/// What no library reaches: the server's framework, command lines, other backends' clients.
const NO_LIBRARY_REACHES: &[&str] = &["actix-web", "actix-http", "clap", "tonic", "tracing-subscriber"];

/// Fails where a crate reaches what it must not.
pub(crate) fn check() -> Result<()> {
    for (name, allowed) in MAY_REACH {
        let reached = tree(name)?;
        for dependency in &reached {
            let ours = dependency == "lkr" || dependency.starts_with("lkr-");
            ensure!(
                !ours || dependency == name || allowed.contains(&dependency.as_str()),
                "{name} reaches {dependency}, which lies further out"
            );
        }
        check_foreign(name, &reached)?;
    }
    check_foreign("lkr", &tree("lkr")?)
}

fn check_foreign(name: &str, reached: &[String]) -> Result<()> {
    for forbidden in NO_LIBRARY_REACHES {
        ensure!(!reached.iter().any(|dependency| dependency == forbidden), "{name} reaches {forbidden}");
    }
    Ok(())
}

/// The names of all packages that a package needs to be used.
fn tree(package: &str) -> Result<Vec<String>> {
    let arguments =
        ["tree", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--package", package];
    let output = cargo(&arguments)?.output().context("cannot run cargo tree")?;
    ensure!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect())
}

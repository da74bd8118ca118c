//! Lints: formatting, clippy, documentation, the book, the console, the scripts of the comparison, the files in `deploy`,
//! the fuzz targets, dependencies, licences.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{book, cargo, cargo_tool::Tool, deploy, direction, entries, fuzz, root, run, tools};

/// The checker of licences and sources.
const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2", arguments: &["--no-default-features"] };

/// The checker of dependencies that a crate declares and does not use.
const MACHETE: Tool = Tool { name: "cargo-machete", version: "0.9.2", arguments: &[] };

pub(crate) fn run_lints() -> Result<()> {
    run(cargo(&["fmt", "--all", "--check"])?)?;
    direction::check()?;
    check_workspace_dependencies()?;
    machete()?;
    run(cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"])?)?;
    check_alone("lkr")?;
    fuzz::check_targets()?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"])?;
    doc.env("RUSTDOCFLAGS", "--deny warnings");
    run(doc)?;
    book::check()?;
    console()?;
    comparison()?;
    deploy::check_with_present_tools()?;
    deny()
}

/// Checks the types of the console, runs those of its tests that need no browser, and checks that the
/// built files are what its sources give. A build of lkr needs no Node, so this is skipped where Node
/// is not installed.
fn console() -> Result<()> {
    let folder = match tools::console_packages() {
        Ok(folder) => folder,
        Err(error) => {
            eprintln!("skipped: the console's sources: {error:#}");
            return Ok(());
        }
    };
    let mut check = Command::new("npm");
    check.args(["run", "--silent", "check"]).current_dir(folder);
    run(check)
}

/// Runs the tests of the scripts that compare lkr with other systems.
fn comparison() -> Result<()> {
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "--quiet"]).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.current_dir(root()?.join("docs/comparison"));
    run(tests)
}

/// Checks licences and sources.
fn deny() -> Result<()> {
    let Some(binary) = DENY.binary_or_skip("licences and sources")? else { return Ok(()) };
    let mut deny = Command::new(binary);
    deny.args(["check", "--hide-inclusion-graph", "bans", "licenses", "sources"]).current_dir(root()?);
    run(deny)
}

/// Fails if a crate declares a dependency that it does not use.
fn machete() -> Result<()> {
    let Some(binary) = MACHETE.binary_or_skip("unused dependencies")? else { return Ok(()) };
    let mut machete = Command::new(binary);
    machete.args(["benches", "bins", "crates", "tests", "fuzz"]).current_dir(root()?);
    run(machete)
}

/// `cargo xtask alone`: checks each crate alone. Most crates need dependencies with other features, so more crates are compiled
/// for it than for all lints; these check only `lkr` alone, with the libraries that it consists of.
pub(crate) fn check_each_crate() -> Result<()> {
    for manifest in manifests()? {
        let folder = manifest.parent().context("a manifest lies in a folder")?;
        let name =
            folder.file_name().and_then(|name| name.to_str()).context("a crate's folder has a name")?;
        if folder.parent().is_some_and(|parent| parent.ends_with("crates")) {
            check_alone(name)?;
        }
    }
    Ok(())
}

/// Checks a crate alone, so that it does not compile only because another one enables a feature that it lacks.
fn check_alone(name: &str) -> Result<()> {
    run(cargo(&["check", "--quiet", "--package", name])?)
}

/// Fails if `[workspace.dependencies]` lists a crate that no member uses; machete looks at members alone.
fn check_workspace_dependencies() -> Result<()> {
    let listed =
        dependency_names(&fs::read_to_string(root()?.join("Cargo.toml"))?, "[workspace.dependencies]");
    let mut used = BTreeSet::new();
    for manifest in manifests()? {
        let text = fs::read_to_string(&manifest)?;
        used.extend(
            text.lines()
                .filter_map(|line| line.split_once(".workspace"))
                .map(|(name, _)| name.trim().to_owned()),
        );
        used.extend(
            text.lines()
                .filter(|line| line.contains("workspace = true"))
                .filter_map(|line| line.split_once('='))
                .map(|(name, _)| name.trim().to_owned()),
        );
    }
    let unused: Vec<&String> = listed.iter().filter(|name| !used.contains(*name)).collect();
    ensure!(unused.is_empty(), "no member uses these workspace dependencies: {unused:?}");
    Ok(())
}

/// The keys of a section of a manifest.
fn dependency_names(manifest: &str, section: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| *line != section).skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split_once('=')).map(|(name, _)| name.trim().to_owned()).collect()
}

/// The manifests of all members.
fn manifests() -> Result<Vec<PathBuf>> {
    let root = root()?;
    let mut manifests = vec![root.join("benches/Cargo.toml"), root.join("tests/Cargo.toml")];
    for group in ["bins", "crates"] {
        manifests.extend(entries(&root.join(group))?.into_iter().map(|folder| folder.join("Cargo.toml")));
    }
    manifests.retain(|manifest| manifest.is_file());
    manifests.sort();
    Ok(manifests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependency_names_are_the_keys_of_the_section() {
        let manifest =
            "[a]\nx = 1\n[workspace.dependencies]\none = \"1\"\ntwo = { version = \"2\" }\n\n[b]\ny = 1\n";
        assert_eq!(dependency_names(manifest, "[workspace.dependencies]"), ["one", "two"]);
    }
}

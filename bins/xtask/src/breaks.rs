//! Checks that tests catch known mistakes. Each patch in `tests/breaks` makes one in a copy of the working tree.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, entries, root, run};

/// The copy of the working tree, and its target folder.
const TREE: &str = "target/breaks/tree";
const TARGET: &str = "target/breaks/target";

/// The tests that must fail.
const TESTS: [&str; 5] = ["test", "--package", "lkr-server", "--test", "hidden_changes"];

/// Applies each patch, or the named one, to a copy of the working tree, and runs the tests there.
///
/// The copy is `target/breaks/tree`. It has a target folder of its own: in a shared one, cargo would take what was built from
/// a patched file for what the working tree's file makes. So the first run builds all dependencies.
///
/// # Errors
/// If the tests fail without a patch, or pass with one.
pub(crate) fn check_breaks(arguments: &[OsString]) -> Result<()> {
    let named = arguments.first().map(|name| name.to_string_lossy());
    let mut chosen = patches()?;
    chosen.retain(|patch| named.as_ref().is_none_or(|named| name_of(patch) == *named));
    ensure!(!chosen.is_empty(), "no patch has this name; see tests/breaks");
    let tree = Path::new(TREE);
    copy_tree(tree)?;
    build(tree)?;
    ensure!(passes(tree)?, "the tests fail without a patch");
    eprintln!("no patch: the tests pass");
    let mut missed = Vec::new();
    for patch in &chosen {
        let name = name_of(patch);
        run(apply(patch, tree, &[]))?;
        let passed = build(tree).and_then(|()| passes(tree));
        run(apply(patch, tree, &["--reverse"]))?;
        if passed.with_context(|| format!("{name}: cannot run the tests"))? {
            eprintln!("{name}: MISSED, the tests pass");
            missed.push(name);
        } else {
            eprintln!("{name}: caught, the tests fail");
        }
    }
    if missed.is_empty() { Ok(()) } else { bail!("the tests do not catch {}", missed.join(", ")) }
}

/// The patches, by name.
fn patches() -> Result<Vec<PathBuf>> {
    let mut patches = entries(&root()?.join("tests/breaks"))?;
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.sort();
    Ok(patches)
}

fn name_of(patch: &Path) -> String {
    patch.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A command that applies a patch to the folder `tree` below the root.
fn apply(patch: &Path, tree: &Path, options: &[&str]) -> Command {
    let mut apply = Command::new("git");
    apply.arg("apply").args(options);
    if !tree.as_os_str().is_empty() {
        apply.arg("--directory").arg(tree);
    }
    apply.arg(patch).current_dir(root().unwrap_or_default());
    apply
}

/// Copies the files that git tracks or would track. Files that are equal keep their times, so that they are not built
/// again; files that no longer exist are removed.
fn copy_tree(tree: &Path) -> Result<()> {
    let root = root()?;
    let list = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(list).current_dir(&root).output().context("cannot run git")?;
    ensure!(listed.status.success(), "cannot list the files: is this a git checkout?");
    let listed = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let files: Vec<&Path> =
        listed.split_terminator('\0').map(Path::new).filter(|file| root.join(file).is_file()).collect();
    for file in &files {
        copy_changed(&root.join(file), &root.join(tree).join(file))?;
    }
    remove_others(&root.join(tree), &root.join(tree), &files)
}

fn copy_changed(from: &Path, to: &Path) -> Result<()> {
    let content = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    if fs::read(to).is_ok_and(|present| present == content) {
        return Ok(());
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    fs::copy(from, to).map(drop).with_context(|| format!("cannot write {}", to.display()))
}

/// Removes the files below `folder` that are not listed.
fn remove_others(tree: &Path, folder: &Path, files: &[&Path]) -> Result<()> {
    for entry in entries(folder)? {
        if entry.is_dir() {
            remove_others(tree, &entry, files)?;
        } else if let Ok(file) = entry.strip_prefix(tree)
            && !files.contains(&file)
        {
            fs::remove_file(&entry).with_context(|| format!("cannot remove {}", entry.display()))?;
        }
    }
    Ok(())
}

fn build(tree: &Path) -> Result<()> {
    let mut build = tests(tree)?;
    build.arg("--no-run").arg("--quiet");
    run(build)
}

/// Whether the tests pass. Their output is not shown: those of a patch are expected to fail.
fn passes(tree: &Path) -> Result<bool> {
    let mut tests = tests(tree)?;
    let status = tests.arg("--quiet").stdout(Stdio::null()).stderr(Stdio::null()).status();
    Ok(status.context("cannot run cargo")?.success())
}

fn tests(tree: &Path) -> Result<Command> {
    let mut tests = cargo(&TESTS)?;
    tests.current_dir(root()?.join(tree)).env("CARGO_TARGET_DIR", root()?.join(TARGET));
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_patch_applies() {
        let patches = patches().unwrap();
        assert!(patches.len() >= 10, "found only {} patches", patches.len());
        for patch in &patches {
            let name = name_of(patch);
            match apply(patch, Path::new(""), &["--check"]).output() {
                Ok(checked) => {
                    let reason = String::from_utf8_lossy(&checked.stderr).into_owned();
                    assert!(checked.status.success(), "tests/breaks/{name}.patch does not apply: {reason}");
                }
                Err(error) => lkr_test_support::skip(&format!("cannot run git: {error}")),
            }
        }
    }
}

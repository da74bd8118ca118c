//! `cargo xtask test`: builds all tests, and runs them, the end-to-end ones beside all others.
//!
//! Cargo runs one test program after another, and most of them wait for servers, disks and clocks while a processor is idle. The
//! end-to-end tests take as long as all others together.

mod captured;

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io::{self, Write},
    process::Command,
    thread,
};

use anyhow::{Context, Result, anyhow};
use serde_json::Value;

use self::captured::Captured;
use crate::{cargo, executable, root, run, tools, with_model};

/// The test program that runs beside all others.
const END_TO_END: &str = "e2e";

/// What takes part in each test run. All of it is built by the first command, and by no other one.
const ALL: [&str; 3] = ["test", "--workspace", "--no-fail-fast"];

/// Runs the tests that the arguments of `cargo test` name, or all.
pub(crate) fn test(arguments: &[OsString]) -> Result<()> {
    // A stale lock file would otherwise fail after all tests.
    check_locks()?;
    if arguments.is_empty() {
        return test_all();
    }
    let mut tests = cargo(&ALL)?;
    tests.args(arguments);
    with_model(&mut tests)?;
    tools::with_tools(&mut tests)?;
    run(tests)
}

fn test_all() -> Result<()> {
    let mut build = cargo(&ALL)?;
    build.arg("--no-run");
    run(build)?;
    executable::link_names(&executable::target_dir("dev")?)?;
    let mut prepared = cargo(&ALL)?;
    with_model(&mut prepared)?;
    tools::with_tools(&mut prepared)?;
    // All programs are built for their own tests.
    prepared.env("LKR_TEST_PROGRAMS_BUILT", "1");
    let end_to_end = tests(&prepared, &["--test".to_owned(), END_TO_END.to_owned()])?;
    let others = [
        tests(&prepared, &other_targets()?)?,
        tests(&prepared, &["--doc".to_owned()])?,
        embedding_program()?,
    ];
    eprintln!("the other tests run beside the end-to-end ones; their output follows");
    let (end_to_end, others) = thread::scope(|scope| {
        let others = scope
            .spawn(|| others.into_iter().map(|other| Captured::of(other, io::sink())).collect::<Vec<_>>());
        (Captured::of(end_to_end, io::stderr()), others.join())
    });
    let mut runs = vec![end_to_end?];
    for other in others.map_err(|_| anyhow!("a thread that ran tests panicked"))? {
        let other = other?;
        io::stderr().write_all(&other.output)?;
        runs.push(other);
    }
    report(runs)
}

/// Repeats what failed tests said, so that it is the end of a long output.
fn report(runs: Vec<Captured>) -> Result<()> {
    for run in runs.iter().filter(|run| run.result.is_err()) {
        eprintln!("\n{}", run.failures());
    }
    runs.into_iter().try_for_each(|run| run.result)
}

/// A run of tests with the variables of `prepared`.
fn tests(prepared: &Command, targets: &[String]) -> Result<Command> {
    let mut tests = cargo(&ALL)?;
    tests.args(targets);
    tests.envs(prepared.get_envs().filter_map(|(variable, value)| Some((variable, value?))));
    Ok(tests)
}

/// The arguments of cargo that name everything but the end-to-end tests.
fn other_targets() -> Result<Vec<String>> {
    let output = cargo(&["metadata", "--no-deps", "--format-version", "1"])?.output()?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata is JSON")?;
    let mut arguments = vec!["--lib".to_owned(), "--bins".to_owned()];
    for name in test_names(&metadata).into_iter().filter(|name| *name != END_TO_END) {
        arguments.extend(["--test".to_owned(), name.to_owned()]);
    }
    Ok(arguments)
}

/// The names of the integration tests of all packages. Several packages may have one of the same name.
fn test_names(metadata: &Value) -> BTreeSet<&str> {
    let targets = list(&metadata["packages"]).flat_map(|package| list(&package["targets"]));
    let tests = targets.filter(|target| list(&target["kind"]).any(|kind| kind == "test"));
    tests.filter_map(|target| target["name"].as_str()).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A program outside the workspace that embeds retrieval alone; it shares the build outputs.
fn embedding_program() -> Result<Command> {
    let root = root()?;
    let mut program = cargo(&["run", "--quiet", "--locked", "--manifest-path"])?;
    program.arg(root.join("tests/embed-retrieval/Cargo.toml")).env("CARGO_TARGET_DIR", root.join("target"));
    Ok(program)
}

/// Fails if the lock file of a package outside the workspace does not fit its manifest.
fn check_locks() -> Result<()> {
    for manifest in ["tests/embed-retrieval/Cargo.toml", "fuzz/Cargo.toml"] {
        let mut fetch = cargo(&["fetch", "--quiet", "--locked", "--manifest-path"])?;
        fetch.arg(root()?.join(manifest));
        run(fetch).with_context(|| {
            format!("the lock file of {manifest} is stale: run cargo update --workspace there")
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integration_tests_of_all_packages_are_named_once() {
        let target = |name: &str, kind: &str| json!({"name": name, "kind": [kind]});
        let metadata = json!({"packages": [
            {"targets": [target("one", "lib"), target("it", "test"), target("kill", "test")]},
            {"targets": [target("it", "test"), target("speed", "bench"), target(END_TO_END, "test")]},
        ]});
        assert_eq!(test_names(&metadata).into_iter().collect::<Vec<_>>(), [END_TO_END, "it", "kill"]);
    }

    #[test]
    fn other_tests_are_all_but_the_end_to_end_ones() {
        let arguments = other_targets().unwrap();
        assert!(arguments.iter().any(|argument| argument == "conformance"), "{arguments:?}");
        assert!(arguments.iter().all(|argument| argument != END_TO_END));
    }
}

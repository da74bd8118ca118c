//! Compares the benchmarks of two commits, or of a commit and the working tree.

mod intervals;

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use self::intervals::{Interval, MAX_ROUNDS, ratio_of_rounds};
use crate::{cargo, entries, model_dir, quietly, remove_dir, root};

const USAGE: &str = "usage: cargo xtask compare BEFORE [AFTER] [--rounds N] [--only NAME]";

/// The folder of worktrees, executables and results.
const FOLDER: &str = "target/compare";

/// The package and the target of the benchmarks.
const PACKAGE: &str = "lkr-benches";
const TARGET: &str = "hot";

/// The number of rounds; in each, both sides run once.
const ROUNDS: usize = 6;

/// What is slower or faster by less than this is not worth telling, whatever the confidence.
const SMALLEST: f64 = 0.02;

/// The median times of a side's benchmarks in a round, in nanoseconds, by name.
type Times = BTreeMap<String, f64>;

struct Arguments {
    before: String,
    /// `None` for the working tree.
    after: Option<String>,
    rounds: usize,
    /// Only benchmarks whose names contain this.
    only: Option<String>,
}

/// `cargo xtask compare BEFORE [AFTER] [--rounds N] [--only NAME]`: builds the benchmarks of both, runs them in turn, and prints for each
/// how long AFTER, by default the working tree, takes in relation to BEFORE, with a confidence interval.
///
/// # Errors
/// If a benchmark is slower with confidence, or a side has no benchmarks.
pub(crate) fn compare(arguments: &[OsString]) -> Result<()> {
    let arguments = Arguments::parse(arguments)?;
    let before = commit_of(&arguments.before)?;
    let after = arguments.after.as_deref().map(commit_of).transpose()?;
    let folder = root()?.join(FOLDER);
    let results = folder.join("results");
    remove_dir(&results)?;
    let before = build(&folder, "before", Some(&before))?;
    let after = build(&folder, "after", after.as_deref())?;
    let mut rounds = Vec::new();
    for round in 0..arguments.rounds {
        eprintln!("round {} of {}", round + 1, arguments.rounds);
        let only = arguments.only.as_deref();
        let measure_before = || measure(&before, &results.join(format!("{round}-before")), only);
        let measure_after = || measure(&after, &results.join(format!("{round}-after")), only);
        // The side that runs second may find a machine that is hotter, or whose caches are filled.
        rounds.push(if round % 2 == 0 {
            let first = measure_before()?;
            (first, measure_after()?)
        } else {
            let first = measure_after()?;
            (measure_before()?, first)
        });
    }
    report(&rounds)
}

impl Arguments {
    fn parse(arguments: &[OsString]) -> Result<Self> {
        let mut commits = Vec::new();
        let (mut rounds, mut only) = (ROUNDS, None);
        let mut rest = arguments.iter().map(|argument| argument.to_str().context(USAGE));
        while let Some(argument) = rest.next().transpose()? {
            match argument {
                "--rounds" => rounds = rest.next().context(USAGE)??.parse().context(USAGE)?,
                "--only" => only = Some(rest.next().context(USAGE)??.to_owned()),
                commit if !commit.starts_with('-') => commits.push(commit.to_owned()),
                _ => bail!(USAGE),
            }
        }
        ensure!((2..=MAX_ROUNDS).contains(&rounds), "--rounds takes 2 to {MAX_ROUNDS}");
        let mut commits = commits.into_iter();
        let (before, after) = (commits.next().context(USAGE)?, commits.next());
        ensure!(commits.next().is_none(), USAGE);
        Ok(Self { before, after, rounds, only })
    }
}

/// The hash of a commit. In a worktree that is kept, `HEAD` would mean another one.
fn commit_of(name: &str) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(format!("{name}^{{commit}}"));
    let output = git.current_dir(root()?).output().context("cannot run git")?;
    ensure!(output.status.success(), "{name} is no commit");
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Builds the benchmarks of a commit, or of the working tree, and returns a copy of their executable. Both sides share what they
/// have in common, which is most: paths tell cargo the rest apart.
fn build(folder: &Path, side: &str, commit: Option<&str>) -> Result<PathBuf> {
    let source = match commit {
        Some(commit) => checkout(&folder.join(side), commit)?,
        None => root()?,
    };
    let name = commit.unwrap_or("the working tree");
    ensure!(source.join("benches/Cargo.toml").exists(), "{name} has no benchmarks in the folder benches");
    eprintln!("building the benchmarks of {name}");
    let arguments =
        ["bench", "--package", PACKAGE, "--no-run", "--message-format", "json-render-diagnostics"];
    let mut build = cargo(&arguments)?;
    build.current_dir(&source).env("CARGO_TARGET_DIR", folder.join("target")).stderr(Stdio::inherit());
    let output = build.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "the benchmarks of {name} cannot be built");
    let built = executable(&String::from_utf8_lossy(&output.stdout)).context("cargo names no executable")?;
    let kept = folder.join(format!("{TARGET}-{side}"));
    fs::copy(&built, &kept).with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(kept)
}

/// The path of the benchmarks in cargo's messages, one JSON object a line.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built =
        messages.filter(|message| message.pointer("/target/name").is_some_and(|name| name == TARGET));
    built.find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
}

/// Checks a commit out into a worktree of its own.
fn checkout(folder: &Path, commit: &str) -> Result<PathBuf> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments);
        git
    };
    if folder.exists() {
        quietly(git(&["checkout", "--quiet", "--force", "--detach", commit]).current_dir(folder))?;
        return Ok(folder.to_owned());
    }
    // Entries of folders that somebody removed.
    quietly(git(&["worktree", "prune"]).current_dir(root()?))?;
    let mut add = git(&["worktree", "add", "--quiet", "--force", "--detach"]);
    quietly(add.arg(folder).arg(commit).current_dir(root()?))?;
    Ok(folder.to_owned())
}

/// Runs the benchmarks once.
fn measure(executable: &Path, results: &Path, only: Option<&str>) -> Result<Times> {
    let mut bench = Command::new(executable);
    bench.args(["--bench", "--noplot", "--warm-up-time", "0.3", "--measurement-time", "1"]).args(only);
    bench.env("CRITERION_HOME", results).env("LKR_MODEL_DIR", model_dir()?);
    quietly(&mut bench)?;
    let mut times = Times::new();
    read_times(results, &mut times)?;
    ensure!(!times.is_empty(), "no benchmark has this name");
    Ok(times)
}

/// Adds the medians in a folder of criterion's results.
fn read_times(folder: &Path, times: &mut Times) -> Result<()> {
    for path in entries(folder)?.into_iter().filter(|path| path.is_dir()) {
        if path.file_name().is_some_and(|name| name == "new") {
            let read = |name: &str| -> Result<Value> {
                let path = path.join(name);
                let text =
                    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                Ok(serde_json::from_str(&text)?)
            };
            let (benchmark, estimates) = (read("benchmark.json")?, read("estimates.json")?);
            let name =
                benchmark.get("full_id").and_then(Value::as_str).context("a benchmark without a name")?;
            let median = estimates.pointer("/median/point_estimate").and_then(Value::as_f64);
            times.insert(name.to_owned(), median.context("a benchmark without a median")?);
        } else {
            read_times(&path, times)?;
        }
    }
    Ok(())
}

/// Prints a line for each benchmark that both sides have, and the names of the others.
///
/// # Errors
/// If a benchmark is slower with confidence, or none is on both sides.
fn report(rounds: &[(Times, Times)]) -> Result<()> {
    let Some((first, second)) = rounds.first() else { bail!("no rounds") };
    let alone = |of: &Times, other: &Times| {
        of.keys().filter(|name| !other.contains_key(*name)).cloned().collect::<Vec<_>>()
    };
    for (side, names) in [("before", alone(first, second)), ("after", alone(second, first))] {
        if !names.is_empty() {
            eprintln!("not compared, only {side}: {}", names.join(", "));
        }
    }
    ensure!(first.keys().any(|name| second.contains_key(name)), "no benchmark is on both sides");
    let mut slower = Vec::new();
    eprintln!(
        "{:<45} {:>10} {:>10}  after / before, with confidence of 99 %",
        "µs of processor time", "before", "after"
    );
    for name in first.keys() {
        let pairs = rounds.iter().map(|(before, after)| Some((*before.get(name)?, *after.get(name)?)));
        let Some(pairs) = pairs.collect::<Option<Vec<_>>>() else { continue };
        let ratio = ratio_of_rounds(&pairs);
        let verdict = verdict(&ratio);
        let mean = |times: Vec<f64>| times.iter().sum::<f64>() / times.len() as f64 / 1e3;
        let (before, after) = pairs.into_iter().unzip();
        let (before, after) = (mean(before), mean(after));
        let Interval { low, middle, high } = ratio;
        eprintln!("{name:<45} {before:>10.2} {after:>10.2}  {middle:.3} ({low:.3} to {high:.3}) {verdict}");
        if verdict == "slower" {
            slower.push(name.as_str());
        }
    }
    ensure!(slower.is_empty(), "slower: {}", slower.join(", "));
    Ok(())
}

/// What an interval of ratios says with confidence.
fn verdict(ratio: &Interval) -> &'static str {
    if ratio.low > 1.0 && ratio.middle > 1.0 + SMALLEST {
        "slower"
    } else if ratio.high < 1.0 && ratio.middle < 1.0 - SMALLEST {
        "faster"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_that_of_the_benchmarks() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"lkr\"},\"executable\":\"/wrong\"}\n",
            "not json\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"hot\"},\"executable\":\"/right\"}\n",
            "{\"reason\":\"build-finished\",\"success\":true}\n",
        );
        assert_eq!(executable(messages), Some("/right".into()));
        assert_eq!(executable(""), None);
    }

    #[test]
    fn times_are_read_from_the_folders_of_criterion() {
        let folder = tempfile::tempdir().unwrap();
        for (at, name, median) in [("a/b", "store/dense query", 1500.0), ("a/c", "text/words", 20.5)] {
            let new = folder.path().join(at).join("new");
            fs::create_dir_all(&new).unwrap();
            fs::create_dir_all(folder.path().join(at).join("report")).unwrap();
            fs::write(new.join("benchmark.json"), format!("{{\"full_id\":\"{name}\"}}")).unwrap();
            fs::write(new.join("estimates.json"), format!("{{\"median\":{{\"point_estimate\":{median}}}}}"))
                .unwrap();
        }
        let mut times = Times::new();
        read_times(folder.path(), &mut times).unwrap();
        assert_eq!(times, Times::from([("store/dense query".into(), 1500.0), ("text/words".into(), 20.5)]));
    }

    #[test]
    fn verdicts_need_confidence_and_a_difference_worth_telling() {
        let of = |low, middle, high| verdict(&Interval { low, middle, high });
        assert_eq!(of(1.01, 1.05, 1.09), "slower");
        assert_eq!(of(0.99, 1.05, 1.11), "");
        assert_eq!(of(1.005, 1.01, 1.015), "");
        assert_eq!(of(0.80, 0.90, 0.99), "faster");
    }

    #[test]
    fn commits_are_those_of_this_worktree() {
        let head = commit_of("HEAD").unwrap();
        assert_eq!(commit_of(&head).unwrap(), head);
        for wrong in ["no-such-commit", "--all"] {
            assert!(commit_of(wrong).unwrap_err().to_string().contains("is no commit"), "{wrong}");
        }
    }

    #[test]
    fn benchmarks_of_one_side_alone_do_not_pass_for_equal_ones() {
        let times = |name: &str| Times::from([(name.to_owned(), 1.0)]);
        assert!(report(&[(times("a"), times("a")), (times("a"), times("a"))]).is_ok());
        let error = report(&[(times("a"), times("b")), (times("a"), times("b"))]).unwrap_err();
        assert_eq!(error.to_string(), "no benchmark is on both sides");
    }

    #[test]
    fn arguments_are_read() {
        let parse =
            |text: &str| Arguments::parse(&text.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        let all = parse("HEAD~1 --rounds 3 HEAD --only store").unwrap();
        assert_eq!((all.before.as_str(), all.after.as_deref()), ("HEAD~1", Some("HEAD")));
        assert_eq!((all.rounds, all.only.as_deref()), (3, Some("store")));
        assert_eq!(parse("HEAD").unwrap().after, None);
        for wrong in ["", "a b c", "a --rounds", "a --rounds 1", "a --rounds x", "a --unknown"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

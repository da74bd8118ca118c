//! Fuzzing the parsers of untrusted files, and the matrix kernels.

use std::{ffi::OsString, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, cargo_tool::Tool, entries, quietly, root, run};

/// The driver of libFuzzer.
const DRIVER: Tool = Tool { name: "cargo-fuzz", version: "0.13.2", arguments: &[] };

/// What cargo says if it cannot download a crate.
const NOT_DOWNLOADED: [&str; 4] =
    ["failed to download", "failed to fetch", "failed to get", "failed to query"];

/// The targets, each with the folder of seeds, and of shared test data, that its corpus starts from.
const TARGETS: [(&str, &str); 11] = [
    ("article", "html"),
    ("charset", "txt"),
    ("decode_blocks", "blocks"),
    ("html2text", "html"),
    ("lopdf", "pdf"),
    ("markdown", "md"),
    ("matrix_products", "products"),
    ("office_oxide", "docx"),
    ("pdf_oxide", "pdf"),
    ("plain_text", "txt"),
    ("zip_xml", "docx"),
];

/// The longest input.
const MAX_BYTES: u64 = 64 * 1024;

/// Limits of libFuzzer: seconds for one input, and MiB of memory.
const LIMITS: [&str; 2] = ["-timeout=20", "-rss_limit_mb=2048"];

/// Runs each target, or the named one, for a number of seconds (60 by default).
pub(crate) fn fuzz(arguments: &[OsString]) -> Result<()> {
    let word = |at: usize| arguments.get(at).map(|word| word.to_string_lossy());
    let seconds = word(0).map_or(Ok(60), |word| word.parse()).context("SECONDS is a number")?;
    let named = word(1);
    let chosen: Vec<_> =
        TARGETS.iter().filter(|(target, _)| named.as_ref().is_none_or(|named| named == target)).collect();
    ensure!(
        !chosen.is_empty(),
        "unknown target; the targets are {}",
        TARGETS.map(|(name, _)| name).join(", ")
    );
    let driver = DRIVER.binary()?;
    let mut found = Vec::new();
    for (target, seeds) in chosen {
        fill_corpus(target, seeds)?;
        run(command(&driver, "build", target)?).with_context(|| format!("{target} does not compile"))?;
        if let Err(error) = run_target(&driver, target, seconds) {
            eprintln!("{target}: {error:#}");
            found.push(*target);
        }
    }
    if found.is_empty() { Ok(()) } else { bail!("the fuzzer found failures in {}", found.join(", ")) }
}

/// Adds the seeds, and small files of the shared test data if it exists, to the target's corpus. What earlier runs found
/// stays in the corpus.
fn fill_corpus(target: &str, seeds: &str) -> Result<()> {
    let fuzz = root()?.join("fuzz");
    let corpus = fuzz.join("corpus").join(target);
    fs::create_dir_all(&corpus).with_context(|| format!("cannot make {}", corpus.display()))?;
    let shared = root()?.join("../shared/data/files").join(seeds);
    for folder in [fuzz.join("seeds").join(seeds), shared].iter().filter(|folder| folder.is_dir()) {
        for file in entries(folder)? {
            copy_small(&file, &corpus)?;
        }
    }
    Ok(())
}

fn copy_small(file: &Path, corpus: &Path) -> Result<()> {
    let small = file.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES);
    if let Some(name) = file.file_name().filter(|_| small) {
        fs::copy(file, corpus.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    Ok(())
}

/// Builds and runs a target, without a sanitizer: what is looked for are panics and wrong results. Only the kernels under
/// `matrix_products` are unsafe code.
fn run_target(driver: &Path, target: &str, seconds: u64) -> Result<()> {
    let mut fuzz = command(driver, "run", target)?;
    fuzz.arg("--");
    fuzz.args([format!("-max_total_time={seconds}"), format!("-max_len={MAX_BYTES}")]).args(LIMITS);
    run(fuzz)
}

/// A command of the driver for a target.
fn command(driver: &Path, verb: &str, target: &str) -> Result<Command> {
    let root = root()?;
    let mut fuzz = Command::new(driver);
    fuzz.args(["fuzz", verb, "--sanitizer", "none", "--codegen-units", "16", "--target-dir"])
        .arg(root.join("target"))
        .arg("--fuzz-dir")
        .arg(root.join("fuzz"))
        .arg(target)
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1");
    Ok(fuzz)
}

/// Checks that every target compiles, without the libFuzzer that running one needs. The crate is outside of the workspace, so
/// nothing else builds it. Skipped where its dependencies cannot be downloaded.
pub(crate) fn check_targets() -> Result<()> {
    let mut check = cargo(&["check", "--quiet", "--no-default-features", "--locked"])?;
    // The build outputs of the workspace have other profiles, and would be replaced.
    check.args(["--manifest-path", "fuzz/Cargo.toml"]).env("CARGO_TARGET_DIR", root()?.join("target/fuzz"));
    let Err(error) = quietly(&mut check) else { return Ok(()) };
    let reason = format!("{error:#}");
    if !NOT_DOWNLOADED.iter().any(|sign| reason.contains(sign)) {
        return Err(error.context("the fuzz targets do not compile"));
    }
    eprintln!("skipped: the fuzz targets: {reason}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_listed_and_has_seeds() {
        let fuzz = root().unwrap().join("fuzz");
        let mut targets: Vec<String> = entries(&fuzz.join("fuzz_targets"))
            .unwrap()
            .iter()
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .collect();
        targets.sort();
        assert_eq!(targets, TARGETS.map(|(target, _)| target));
        for (target, seeds) in TARGETS {
            assert!(!entries(&fuzz.join("seeds").join(seeds)).unwrap().is_empty(), "{target} has no seeds");
        }
    }
}

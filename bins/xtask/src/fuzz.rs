//! Fuzzing the parsers of untrusted files, and the matrix kernels.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, entries, root, run};

/// The driver of libFuzzer.
const FUZZ: &str = "cargo-fuzz";
const FUZZ_VERSION: &str = "0.13.2";

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
    let driver = driver()?;
    let mut found = Vec::new();
    for (target, seeds) in chosen {
        fill_corpus(target, seeds)?;
        if let Err(error) = run_target(&driver, target, seconds) {
            eprintln!("{target}: {error:#}");
            found.push(*target);
        }
    }
    if found.is_empty() { Ok(()) } else { bail!("the fuzzer found failures in {}", found.join(", ")) }
}

/// The driver, built once without optimisation because it only starts other programs.
fn driver() -> Result<PathBuf> {
    let tools = root()?.join("target/tools");
    let binary = tools.join("bin/cargo-fuzz");
    if !binary.is_file() {
        let mut install = cargo(&["install", FUZZ, "--version", FUZZ_VERSION, "--quiet"])?;
        install.args(["--locked", "--debug", "--root"]).arg(&tools);
        run(install)?;
    }
    Ok(binary)
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
    let root = root()?;
    let mut fuzz = Command::new(driver);
    fuzz.args(["fuzz", "run", "--sanitizer", "none", "--codegen-units", "16", "--target-dir"])
        .arg(root.join("target"))
        .arg("--fuzz-dir")
        .arg(root.join("fuzz"))
        .args([target, "--"])
        .args([format!("-max_total_time={seconds}"), format!("-max_len={MAX_BYTES}")])
        .args(LIMITS)
        .current_dir(root)
        .env("RUSTC_BOOTSTRAP", "1");
    run(fuzz)
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

//! Runs the tests of code for 64-bit ARM processors under emulation.

use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, quietly, root, run, tools};

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// The crates with code for instruction sets, and the names of the tests of it.
const TESTS: [(&str, &str); 2] = [("lkr-models-local", ""), ("lkr-store-lmdb", "kernel")];

/// The linker, and Debian's packages of it and of the C library.
const LINKER: &str = "aarch64-linux-gnu-gcc";
const LINKER_PACKAGES: [&str; 2] = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];
/// Where that package installs the C library.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The emulator of single programs.
const EMULATOR: &str = "qemu-aarch64";
const EMULATOR_PACKAGES: [&str; 1] = ["qemu-user"];

/// Processors of the emulator, and what each tests: dot products, and NEON alone.
const PROCESSORS: [&str; 2] = ["max", "cortex-a57"];

/// `cargo xtask arm`: builds the unit tests of crates with code for instruction sets for 64-bit ARM processors, and runs them under
/// emulation of a new processor and of an old one. What is missing is installed as for other tests.
pub(crate) fn check() -> Result<()> {
    let linker = tools::installed(LINKER, &LINKER_PACKAGES)?;
    let emulator = tools::installed(EMULATOR, &EMULATOR_PACKAGES)?;
    quietly(Command::new("rustup").args(["target", "add", TARGET])).context("the target is not installed")?;
    for processor in PROCESSORS {
        eprintln!("{processor}:");
        let runner = format!("{} -L {LIBRARIES} -cpu {processor}", emulator.display());
        let variable = |end: &str| format!("CARGO_TARGET_{}_{end}", TARGET.replace('-', "_").to_uppercase());
        for (package, names) in TESTS {
            let mut tests = cargo(&["test", "--lib", "--target", TARGET, "--package", package, names])?;
            // The build outputs of the workspace have other features, and would be replaced.
            tests.env("CARGO_TARGET_DIR", root()?.join("target/arm"));
            tests.env(variable("LINKER"), &linker).env(variable("RUNNER"), &runner);
            tests.env(format!("CC_{}", TARGET.replace('-', "_")), &linker);
            run(tests)?;
        }
    }
    Ok(())
}

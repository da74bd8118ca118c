//! `cargo xtask release`: archives of the executable for other machines. docs/releases.md says which targets were tried.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::{cargo, executable, remove_dir, root, run};

/// Where the archives go, below the root.
const ARCHIVES: &str = "target/release-archives";

/// What an archive contains beside the executable.
const FILES: [&str; 8] = [
    "CHANGELOG.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "deploy/README.md",
    "deploy/lkr-server.service",
    "deploy/lkr-worker@.service",
    "deploy/lkr.env.example",
];

/// The C compilers that link for a target on a machine of another kind, as Debian names them.
const LINKERS: [(&str, &str); 3] = [
    ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
    ("x86_64-pc-windows-gnu", "x86_64-w64-mingw32-gcc"),
    ("x86_64-unknown-linux-gnu", "x86_64-linux-gnu-gcc"),
];

/// `cargo xtask release [--profile PROFILE] [TARGET…]`: builds the executable, by default with the profile `dist` and for this
/// machine, and packs an archive and its SHA-256 sum for each target.
pub(crate) fn pack(arguments: &[OsString]) -> Result<()> {
    let words: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    let words = words.context("arguments are UTF-8")?;
    let (profile, targets) = match words.as_slice() {
        ["--profile", profile, targets @ ..] => (*profile, targets),
        targets => ("dist", targets),
    };
    let host = host()?;
    let targets = if targets.is_empty() { &[host.as_str()] } else { targets };
    if let Some(flag) = targets.iter().find(|target| target.starts_with('-')) {
        bail!("unknown flag {flag}; usage: cargo xtask release [--profile PROFILE] [TARGET…]");
    }
    for target in targets {
        let program = build(target, profile, &host)?;
        let archive = pack_target(target, &program)?;
        eprintln!("{}", archive.display());
    }
    Ok(())
}

/// The target that cargo builds for without `--target`.
fn host() -> Result<String> {
    let version = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output();
    let version = version.context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&version.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Builds the executable for a target, and returns its path.
fn build(target: &str, profile: &str, host: &str) -> Result<PathBuf> {
    let package = executable::PACKAGE;
    let mut build =
        cargo(&["build", "--locked", "--package", package, "--profile", profile, "--target", target])?;
    if let Some((variable, linker)) = linker(target, host)
        && env::var_os(&variable).is_none()
    {
        build.env(variable, linker);
    }
    run(build).with_context(|| format!("cannot build for {target}"))?;
    Ok(executable::target_dir_of(target, profile)?.join(format!("lkr{}", exe_suffix(target))))
}

/// The variable by which cargo is told the linker of a target that is not this machine's, and the linker.
fn linker(target: &str, host: &str) -> Option<(String, &'static str)> {
    let (_, linker) = LINKERS.into_iter().find(|(linked, _)| *linked == target && target != host)?;
    let name = target.to_ascii_uppercase().replace('-', "_");
    Some((format!("CARGO_TARGET_{name}_LINKER"), linker))
}

fn is_windows(target: &str) -> bool {
    target.contains("-windows-")
}

fn exe_suffix(target: &str) -> &'static str {
    if is_windows(target) { ".exe" } else { "" }
}

/// Packs the executable of a target with its files, and returns the archive.
fn pack_target(target: &str, program: &Path) -> Result<PathBuf> {
    let archives = root()?.join(ARCHIVES);
    let name = format!("lkr-{}-{target}", env!("CARGO_PKG_VERSION"));
    let folder = archives.join(&name);
    remove_dir(&folder)?;
    fill(&folder, program, exe_suffix(target))?;
    let archive = archives.join(format!("{name}.{}", if is_windows(target) { "zip" } else { "tar.gz" }));
    run(archiver(&archives, &name, &archive, is_windows(target)))?;
    remove_dir(&folder)?;
    write_sum(&archive)?;
    Ok(archive)
}

/// Fills the folder that an archive contains. The second name of the executable is a hard link, which tar keeps as one.
fn fill(folder: &Path, program: &Path, suffix: &str) -> Result<()> {
    let root = root()?;
    let first = format!("lkr{suffix}");
    let files = FILES.iter().map(|file| (root.join(file), *file));
    for (from, name) in files.chain([(program.to_owned(), first.as_str())]) {
        let to = folder.join(name);
        let parent = to.parent().context("a file lies in a folder")?;
        fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    fs::hard_link(folder.join(&first), folder.join(format!("lkr-server{suffix}")))
        .with_context(|| format!("cannot link in {}", folder.display()))
}

/// The command that packs the folder `name`: tar, or Python for a zip file. Owners and times are left out where tar can.
fn archiver(archives: &Path, name: &str, archive: &Path, is_zip: bool) -> Command {
    let mut command = Command::new(if is_zip { "python3" } else { "tar" });
    if is_zip {
        command.args(["-m", "zipfile", "-c"]);
    } else {
        if cfg!(target_os = "linux") {
            command.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0"]);
        }
        command.arg("-czf");
    }
    command.arg(archive).arg(name).current_dir(archives);
    command
}

/// Writes the sum beside the archive in the form that `sha256sum --check` reads.
fn write_sum(archive: &Path) -> Result<()> {
    let content = fs::read(archive).with_context(|| format!("cannot read {}", archive.display()))?;
    let name = archive.file_name().and_then(|name| name.to_str()).context("an archive has a name")?;
    let sum: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
    let list = archive.with_file_name(format!("{name}.sha256"));
    ensure!(!content.is_empty(), "{} is empty", archive.display());
    fs::write(&list, format!("{sum}  {name}\n")).with_context(|| format!("cannot write {}", list.display()))
}

#[cfg(test)]
mod tests {
    use std::process;

    use super::*;

    #[test]
    fn linker_is_named_for_other_machines_only() {
        let (host, other) = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu");
        assert_eq!(linker(host, host), None);
        let variable = "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER".to_owned();
        assert_eq!(linker(other, host), Some((variable, "aarch64-linux-gnu-gcc")));
    }

    #[test]
    fn archive_contains_every_unit_and_the_sample_of_their_configuration() {
        for path in crate::entries(&root().unwrap().join("deploy")).unwrap() {
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.ends_with(".service") || name == "lkr.env.example" {
                assert!(FILES.contains(&format!("deploy/{name}").as_str()), "{name}");
            }
        }
    }

    #[test]
    fn archive_contains_both_names_and_every_file() {
        let dir = env::temp_dir().join(format!("lkr-xtask-release-{}", process::id()));
        let name = "lkr-0-test";
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("program"), "a program").unwrap();
        fill(&dir.join(name), &dir.join("program"), "").unwrap();
        let archive = dir.join("lkr-0-test.tar.gz");
        run(archiver(&dir, name, &archive, false)).unwrap();
        write_sum(&archive).unwrap();
        let listed = Command::new("tar").arg("-tzf").arg(&archive).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        for file in FILES.into_iter().chain(["lkr", "lkr-server"]) {
            assert!(listed.lines().any(|line| line == format!("{name}/{file}")), "{file} is not in {listed}");
        }
        let sum = fs::read_to_string(dir.join("lkr-0-test.tar.gz.sha256")).unwrap();
        let (digest, file) = sum.split_once("  ").unwrap();
        assert_eq!((digest.len(), file), (64, "lkr-0-test.tar.gz\n"));
        fs::remove_dir_all(&dir).unwrap();
    }
}

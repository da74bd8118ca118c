//! The programs under test.

#![expect(clippy::expect_used, clippy::panic, reason = "test helpers panic on failure")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

/// The variable that says that the programs were built together with the tests. Cargo writes the list of a program's sources only
/// when the program itself is built, so without this the first tests in a new folder would build everything once more.
const BUILT: &str = "LKR_TEST_PROGRAMS_BUILT";

/// The server under test: the path in `LKR_BIN`, or else the binary of the tests' own profile. That binary is built first
/// if it is older than a source file, which happens when these tests run alone.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("LKR_BIN") {
        Some(path) => fs::canonicalize(&path).unwrap_or_else(|e| panic!("LKR_BIN {}: {e}", path.display())),
        None => link_as_server(cli_binary()),
    })
}

/// The executable `lkr` of the tests' own profile.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn cli_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| build_if_stale("lkr-bin", "lkr"))
}

/// Hard-links `lkr-server` to `lkr`, which is the server under that name. Other tests may do the same concurrently.
fn link_as_server(program: &Path) -> PathBuf {
    let server = program.with_file_name("lkr-server");
    let temporary = program.with_file_name(format!(".lkr-server.{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    fs::hard_link(program, &temporary).expect("the server's name beside lkr");
    fs::rename(&temporary, &server).expect("the server's name");
    // A rename between two links of one file leaves both.
    let _ = fs::remove_file(&temporary);
    server
}

/// The root of the workspace.
///
/// # Panics
/// Never: this crate is in it.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("this crate is in the workspace")
}

fn build_if_stale(package: &str, name: &str) -> PathBuf {
    // target/<profile>/deps/<test>
    let test = env::current_exe().expect("the path of the test binary");
    let profile = test.ancestors().nth(2).expect("a test binary is in target/<profile>/deps");
    let binary = profile.join(name);
    if env::var_os(BUILT).is_none() && is_stale(&binary) {
        build(profile);
    }
    assert!(binary.is_file(), "{} is missing: run cargo build -p {package}", binary.display());
    binary
}

/// Builds all programs, so that dependencies have the same features as for the tests and are not built twice.
fn build(profile: &Path) {
    let profile = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["build", "--quiet", "--workspace", "--bins", "--profile", profile];
    let mut command = Command::new(cargo);
    // Variables that cargo sets for this test would make build scripts run again.
    for (key, _) in env::vars_os().filter(|(key, _)| key.to_string_lossy().starts_with("CARGO_PKG_")) {
        command.env_remove(key);
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    let status = command.args(args).current_dir(workspace()).status();
    assert!(status.is_ok_and(|status| status.success()), "the build failed: cargo build --workspace");
}

/// Whether a program is missing or older than one of its sources. Cargo lists them in a file beside the program.
fn is_stale(binary: &Path) -> bool {
    let changed = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let (Some(built), Ok(sources)) = (changed(binary), fs::read_to_string(binary.with_extension("d"))) else {
        return true;
    };
    sources_in(&sources).any(|source| changed(&source).is_none_or(|time: SystemTime| time > built))
}

/// The files after the colon of a make rule. Spaces in names are escaped.
fn sources_in(rule: &str) -> impl Iterator<Item = PathBuf> {
    let (_, sources) = rule.trim_end().split_once(": ").unwrap_or_default();
    let marked = sources.replace("\\ ", "\0");
    let sources: Vec<PathBuf> = marked.split(' ').map(|source| source.replace('\0', " ").into()).collect();
    sources.into_iter().filter(|source| !source.as_os_str().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_listed_after_the_colon() {
        let sources: Vec<_> = sources_in("/t/debug/lkr: /a/b.rs /c\\ d/e.toml\n").collect();
        assert_eq!(sources, [Path::new("/a/b.rs"), Path::new("/c d/e.toml")]);
        assert_eq!(sources_in("/t/debug/lkr:\n").count(), 0);
    }
}

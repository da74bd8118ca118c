use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    time::SystemTime,
};

/// The server to be tested: the one that `LKR_BIN` names, else that of the profile that the tests were built with. It
/// is built first where it is older than a source, as where the tests are run alone.
///
/// # Panics
/// Where it cannot be built.
#[must_use]
pub fn server_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| match env::var_os("LKR_BIN") {
        Some(named) => {
            fs::canonicalize(&named).unwrap_or_else(|e| panic!("LKR_BIN {}: {e}", named.display()))
        }
        None => built("lkr-server", "lkr-server"),
    })
}

/// The command line `lkr`, built as the server is.
///
/// # Panics
/// Where it cannot be built.
#[must_use]
pub fn cli_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built("lkr-cli", "lkr"))
}

/// The root of the workspace.
///
/// # Panics
/// Never: the tests lie in it.
#[must_use]
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the workspace")
}

fn built(package: &str, name: &str) -> PathBuf {
    // target/<profile>/deps/<test>
    let test = env::current_exe().expect("the test knows where it is");
    let profile = test.ancestors().nth(2).expect("a test lies in target/<profile>/deps");
    let binary = profile.join(name);
    let built = fs::metadata(&binary).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if newest_source(package) > built {
        build(profile, package);
    }
    assert!(binary.is_file(), "{} is not there: cargo build -p {package}", binary.display());
    binary
}

fn build(profile: &Path, package: &str) {
    let profile = match profile.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let args = ["build", "--quiet", "-p", package, "--bins", "--profile", profile];
    let status = Command::new(cargo).args(args).current_dir(workspace()).status();
    assert!(status.is_ok_and(|status| status.success()), "it does not build: cargo build -p {package}");
}

/// When a source that a binary is made of last changed.
fn newest_source(package: &str) -> SystemTime {
    let mut newest = SystemTime::UNIX_EPOCH;
    let mut folders = vec![workspace().join("crates"), workspace().join("bins").join(package)];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for entry in entries.flatten() {
            let path = entry.path();
            let is_test = path.file_name().is_some_and(|name| name == "tests" || name == "examples");
            if path.is_dir() && !is_test {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
                newest =
                    newest.max(entry.metadata().and_then(|meta| meta.modified()).expect("a time of change"));
            }
        }
    }
    newest
}

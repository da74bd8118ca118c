//! Tries the server with real clients of other projects.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};

use crate::{cargo, entries, executable, remove_dir, root, run, tools};

/// The folder with one folder for each client.
const CLIENTS: &str = "tests/clients";

/// The longest that a server may take to become ready.
const READY: Duration = Duration::from_secs(120);

/// The password of the account `admin` of each server.
const ADMIN_PASSWORD: &str = "correct horse battery 9";

/// A server process, which is killed on drop.
struct Server {
    process: Child,
    url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `cargo xtask clients [NAME…]`: builds the executable and runs each client in `tests/clients`, or the named ones, against a
/// server of its own with an empty data folder.
///
/// A client is a folder with `requirements.txt`, the Python packages that it needs, and `check.py`, which fails if the client
/// does not get what it should. The script reads the server's address from `LKR_URL`, the password of the account `admin` from
/// `LKR_ADMIN_PASSWORD`, the path of the executable from `LKR_BIN`, and a folder for its files from `SCRATCH`.
pub(crate) fn check(arguments: &[OsString]) -> Result<()> {
    let mut clients = entries(&root()?.join(CLIENTS))?;
    clients.retain(|folder| folder.join("check.py").is_file());
    clients.retain(|folder| arguments.is_empty() || arguments.iter().any(|name| folder.ends_with(name)));
    clients.sort();
    ensure!(!clients.is_empty(), "no client has this name; see {CLIENTS}");
    let programs = build()?;
    let mut failed = Vec::new();
    for client in &clients {
        let name = client.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match check_client(client, &name, &programs) {
            Ok(()) => eprintln!("{name}: passed"),
            Err(error) => {
                eprintln!("{name}: FAILED: {error:#}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
}

/// Builds the executable as the tests do, and returns the folder that holds both names.
fn build() -> Result<PathBuf> {
    run(cargo(&["build", "--workspace", "--bins"])?)?;
    let programs = executable::target_dir("dev")?;
    executable::link_names(&programs)?;
    Ok(programs)
}

fn check_client(client: &Path, name: &str, programs: &Path) -> Result<()> {
    let list = client.join("requirements.txt");
    let required = fs::read_to_string(&list).with_context(|| format!("cannot read {}", list.display()))?;
    let packages: Vec<&str> = required.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let mut script = match packages.as_slice() {
        [] => Command::new("python3"),
        packages => tools::python(&tools::python_packages(&format!("client-{name}"), packages)?)?,
    };
    let scratch = root()?.join("target/clients").join(name);
    remove_dir(&scratch)?;
    fs::create_dir_all(&scratch)?;
    let server = start(programs, &scratch)?;
    script
        .arg(client.join("check.py"))
        .env("LKR_URL", &server.url)
        .env("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)
        .env("LKR_BIN", programs.join("lkr"))
        .env("SCRATCH", &scratch);
    run(script).with_context(|| format!("see also {}", log_file(&scratch).display()))
}

/// Starts a server without a model on a free port, and waits until it is ready.
fn start(programs: &Path, scratch: &Path) -> Result<Server> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let log = File::create(log_file(scratch))?;
    let process = Command::new(programs.join("lkr-server"))
        .current_dir(scratch)
        .env("LKR_LISTEN", address.to_string())
        .env("LKR_DATA_DIR", scratch.join("data"))
        .env("LKR_ADMIN_PASSWORD", ADMIN_PASSWORD)
        .env_remove("LKR_MODEL_DIR")
        .stdout(log.try_clone()?)
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start the server")?;
    let mut server = Server { process, url: format!("http://{address}") };
    let deadline = Instant::now() + READY;
    while !is_ready(&server.url) {
        ensure!(
            server.process.try_wait()?.is_none(),
            "the server ended; see {}",
            log_file(scratch).display()
        );
        ensure!(Instant::now() < deadline, "the server is not ready; see {}", log_file(scratch).display());
        thread::sleep(Duration::from_millis(100));
    }
    Ok(server)
}

fn is_ready(url: &str) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--output"]).arg("/dev/null").arg(format!("{url}/readyz"));
    curl.stdin(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn log_file(scratch: &Path) -> PathBuf {
    scratch.join("server.log")
}

//! What tests and measurements need beside cargo: Python packages, the PDFium library, the programs tesseract and
//! redis-server, an S3 server, a browser.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{downloading, entries, partial_sibling, quietly, remove_dir, root};

/// The Python package that contains the PDFium library.
pub(crate) const PDFIUM_PACKAGE: &str = "pypdfium2==5.15.2";

/// The variable with the path of the library.
const PDFIUM: &str = "LKR_PDFIUM_LIBRARY";

/// The Python packages of an S3 server: moto, without what its other services need, and the framework of its server.
const MOTO_PACKAGES: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];

/// The variable with the folder of these packages.
const MOTO: &str = "LKR_MOTO";

/// Debian's packages of tesseract, and of the data that detects a page's orientation.
const TESSERACT_PACKAGES: [&str; 2] = ["tesseract-ocr", "tesseract-ocr-osd"];

/// Debian's package of Redis. Tests start their own servers on free ports and do not use the service that it may start.
const REDIS_PACKAGES: [&str; 1] = ["redis-server"];

/// The variable with the path of the browser.
const CHROMIUM: &str = "LKR_CHROMIUM";

/// The programs that are Chromium, by the systems that name them so.
const CHROMIUM_NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Debian's packages of the browser, and of fonts for the console's languages.
const CHROMIUM_PACKAGES: [&str; 3] = ["chromium", "fonts-dejavu-core", "fonts-noto-cjk"];

/// The file that lists what is in a folder of Python packages.
const REQUIREMENTS: &str = "requirements.txt";

/// The sources of the console.
const CONSOLE: &str = "crates/lkr-console/web";

/// Makes PDFium, tesseract, Redis, an S3 server and a browser available to the tests. A tool that cannot be installed is a
/// visible skip, and a failure in CI.
pub(crate) fn with_tools(tests: &mut Command) -> Result<()> {
    if let Some(library) = or_skip("tests with PDFium", pdfium())? {
        tests.env(PDFIUM, library);
    }
    or_skip("tests with tesseract", program("tesseract", &TESSERACT_PACKAGES))?;
    with_redis()?;
    with_s3(tests)?;
    with_browser(tests)
}

/// Makes an S3 server available to the tests.
pub(crate) fn with_s3(tests: &mut Command) -> Result<()> {
    if let Some(packages) = or_skip("tests with an S3 server", moto())? {
        tests.env(MOTO, packages);
    }
    Ok(())
}

/// Makes redis-server available.
pub(crate) fn with_redis() -> Result<()> {
    or_skip("tests with Redis", program("redis-server", &REDIS_PACKAGES)).map(drop)
}

/// Makes Chromium and the packages of the console's tests available.
pub(crate) fn with_browser(tests: &mut Command) -> Result<()> {
    let browser = console_packages().and_then(|_| chromium());
    if let Some(chromium) = or_skip("tests with a browser", browser)? {
        tests.env(CHROMIUM, chromium);
    }
    Ok(())
}

/// The folder of the console's sources, with the packages that its lock file pins.
pub(crate) fn console_packages() -> Result<PathBuf> {
    let folder = root()?.join(CONSOLE);
    ensure!(is_on_path("node") && is_on_path("npm"), "node and npm are not installed");
    let (lock, installed) = (folder.join("package-lock.json"), folder.join("node_modules/.lkr-lock"));
    let wanted = fs::read(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&folder);
    downloading(&mut npm)?;
    fs::write(&installed, wanted).with_context(|| format!("cannot write {}", installed.display()))?;
    Ok(folder)
}

/// Chromium: the one that the environment names, otherwise that of the system.
fn chromium() -> Result<PathBuf> {
    if let Some(named) = env::var_os(CHROMIUM).filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    if find_chromium().is_none() {
        install(CHROMIUM_NAMES[0], &CHROMIUM_PACKAGES)?;
    }
    find_chromium().with_context(|| format!("{} is not installed", CHROMIUM_NAMES[0]))
}

fn find_chromium() -> Option<PathBuf> {
    CHROMIUM_NAMES.iter().find_map(|name| on_path(name))
}

/// The tool; `None` if it cannot be had, which is a visible skip, and an error in CI. `what` is what needs it.
pub(crate) fn or_skip<T>(what: &str, tool: Result<T>) -> Result<Option<T>> {
    match tool {
        Ok(tool) => Ok(Some(tool)),
        Err(error) if env::var_os("CI").is_none() => {
            eprintln!("skipped: {what}: {error:#}");
            Ok(None)
        }
        Err(error) => Err(error.context(format!("{what} cannot run"))),
    }
}

/// The PDFium library: the one that the environment names, otherwise that of the Python package.
pub(crate) fn pdfium() -> Result<PathBuf> {
    if let Some(named) = env::var_os(PDFIUM).filter(|named| !named.is_empty()) {
        return Ok(named.into());
    }
    let name = format!("{}pdfium{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let library = python_packages("pypdfium2", &[PDFIUM_PACKAGE])?.join("pypdfium2_raw").join(name);
    ensure!(library.is_file(), "{PDFIUM_PACKAGE} does not contain {}", library.display());
    Ok(library)
}

/// The packages of the S3 server: those that the environment names, otherwise installed ones.
fn moto() -> Result<PathBuf> {
    match env::var_os(MOTO).filter(|named| !named.is_empty()) {
        Some(named) => Ok(named.into()),
        None => python_packages("moto", &MOTO_PACKAGES),
    }
}

/// Installs these Python packages and their dependencies, and returns their folder. The folder appears by one rename, so an
/// interrupted installation leaves no partial folder; it is replaced when the versions change.
pub(crate) fn python_packages(name: &str, packages: &[&str]) -> Result<PathBuf> {
    if let Some(folder) = installed_python_packages(name, packages)? {
        return Ok(folder);
    }
    let folder = python_folder(name)?;
    let partial = partial_sibling(&folder)?;
    remove_dir(&partial)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--target")
        .arg(&partial)
        .args(packages);
    downloading(&mut pip)?;
    fs::write(partial.join(REQUIREMENTS), requirements(packages))?;
    remove_dir(&folder)?;
    fs::rename(&partial, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// The folder of these Python packages, if [`python_packages`] has installed them.
pub(crate) fn installed_python_packages(name: &str, packages: &[&str]) -> Result<Option<PathBuf>> {
    let folder = python_folder(name)?;
    let installed = fs::read_to_string(folder.join(REQUIREMENTS));
    Ok(installed.is_ok_and(|installed| installed == requirements(packages)).then_some(folder))
}

fn python_folder(name: &str) -> Result<PathBuf> {
    Ok(root()?.join("target/tools").join(name))
}

fn requirements(packages: &[&str]) -> String {
    packages.join("\n")
}

/// Installs a program from the system's packages unless it is installed.
fn program(name: &str, packages: &[&str]) -> Result<()> {
    let program = format!("{name}{}", env::consts::EXE_SUFFIX);
    if is_on_path(&program) {
        return Ok(());
    }
    install(&program, packages)
}

/// Installs a program from Debian's packages.
fn install(program: &str, packages: &[&str]) -> Result<()> {
    ensure!(Path::new("/etc/debian_version").exists(), "{program} is not installed");
    ensure!(is_root()?, "{program} is not installed, and installing it needs root");
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"][..], packages].concat())
}

pub(crate) fn is_root() -> Result<bool> {
    let user = Command::new("id").arg("-u").output().context("cannot run id")?;
    Ok(user.stdout.trim_ascii() == b"0")
}

/// The program, installed from Debian's packages unless it is on the path.
pub(crate) fn installed(program: &str, packages: &[&str]) -> Result<PathBuf> {
    if !is_on_path(program) {
        install(program, packages)?;
    }
    on_path(program).with_context(|| format!("{program} is not installed"))
}

/// The program at `path` in a package of Debian, unless it is on the path. It is unpacked below `target/tools`, because
/// installing the package would start a service.
pub(crate) fn debian_program(package: &str, path: &str) -> Result<PathBuf> {
    if let Some(present) = present_debian_program(package, path)? {
        return Ok(present);
    }
    ensure!(Path::new("/etc/debian_version").exists(), "{path} is not installed");
    let folder = unpacked_folder(package)?;
    let partial = partial_sibling(&folder)?;
    remove_dir(&partial)?;
    fs::create_dir_all(&partial)?;
    downloading(Command::new("apt-get").args(["download", package]).current_dir(&partial))?;
    let archive = entries(&partial)?.pop().with_context(|| format!("no package {package} arrived"))?;
    quietly(Command::new("dpkg-deb").arg("--extract").args([&archive, &partial]))?;
    remove_dir(&folder)?;
    fs::rename(&partial, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder.join(path))
}

/// The same program, if it is on the path or unpacked.
pub(crate) fn present_debian_program(package: &str, path: &str) -> Result<Option<PathBuf>> {
    let name = Path::new(path).file_name().and_then(|name| name.to_str()).context("a program has a name")?;
    let unpacked = unpacked_folder(package)?.join(path);
    Ok(on_path(name).or_else(|| unpacked.is_file().then_some(unpacked)))
}

fn unpacked_folder(package: &str) -> Result<PathBuf> {
    Ok(root()?.join("target/tools").join(format!("debian-{package}")))
}

fn is_on_path(program: &str) -> bool {
    on_path(program).is_some()
}

pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    downloading(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Python with the packages in `folder` in addition to its own.
pub(crate) fn python(folder: &Path) -> Result<Command> {
    let inherited = env::var_os("PYTHONPATH").filter(|path| !path.is_empty());
    let folders = inherited.iter().flat_map(|path| env::split_paths(path)).collect::<Vec<_>>();
    let path: OsString = env::join_paths([folder.to_owned()].into_iter().chain(folders))?;
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", path).current_dir(root()?);
    Ok(python)
}

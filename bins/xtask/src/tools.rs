//! What tests and measurements need beside cargo: Python packages, the PDFium library, the program tesseract.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{partial_sibling, quietly, remove_dir, root};

/// The Python package that contains the PDFium library.
const PDFIUM_PACKAGE: &str = "pypdfium2==5.15.2";

/// The variable with the path of the library.
const PDFIUM: &str = "LKR_PDFIUM_LIBRARY";

/// Debian's packages of tesseract, and of the data that detects a page's orientation.
const TESSERACT_PACKAGES: [&str; 2] = ["tesseract-ocr", "tesseract-ocr-osd"];

/// Makes PDFium and tesseract available to the tests. A tool that cannot be installed is a visible skip, and a failure in
/// CI.
pub(crate) fn with_readers(tests: &mut Command) -> Result<()> {
    if let Some(library) = or_skip("tests with PDFium", pdfium())? {
        tests.env(PDFIUM, library);
    }
    or_skip("tests with tesseract", tesseract())?;
    Ok(())
}

fn or_skip<T>(what: &str, tool: Result<T>) -> Result<Option<T>> {
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

/// Installs these Python packages and their dependencies, and returns their folder. The folder appears by one rename, so an
/// interrupted installation leaves no partial folder; it is replaced when the versions change.
pub(crate) fn python_packages(name: &str, packages: &[&str]) -> Result<PathBuf> {
    let folder = root()?.join("target/tools").join(name);
    let (list, wanted) = (folder.join("requirements.txt"), packages.join("\n"));
    if fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    let partial = partial_sibling(&folder)?;
    remove_dir(&partial)?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--target")
        .arg(&partial)
        .args(packages);
    quietly(&mut pip)?;
    fs::write(partial.join("requirements.txt"), wanted)?;
    remove_dir(&folder)?;
    fs::rename(&partial, &folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Installs tesseract from the system's packages unless it is installed.
fn tesseract() -> Result<()> {
    let program = format!("tesseract{}", env::consts::EXE_SUFFIX);
    if is_on_path(&program) {
        return Ok(());
    }
    ensure!(Path::new("/etc/debian_version").exists(), "{program} is not installed");
    let user = Command::new("id").arg("-u").output().context("cannot run id")?;
    ensure!(user.stdout.trim_ascii() == b"0", "{program} is not installed, and installing it needs root");
    apt_get(&["update"])?;
    apt_get(&[&["install", "--yes", "--no-install-recommends"][..], &TESSERACT_PACKAGES].concat())
}

fn is_on_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    quietly(Command::new("apt-get").args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))
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

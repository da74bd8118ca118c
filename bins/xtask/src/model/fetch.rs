//! Fetches a published model from its repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::published::Published;
use super::{WEIGHTS, check_sha256, make_parent, same_sha256, sha256_of};
use crate::{partial_sibling, quietly, remove_dir};

/// The public home of the models.
pub(crate) const HOME: &str = "https://huggingface.co";
/// The file in a model's folder that says where it is from, with the digest of each file.
const ORIGIN: &str = "origin.json";
const SETTINGS: &str = "config_sentence_transformers.json";

/// What a folder of the repository is read for, beside the modules that modules.json names.
const NEEDED: [&str; 3] = ["config.json", "tokenizer.json", WEIGHTS];
const OPTIONAL: [&str; 4] = ["modules.json", "sentence_bert_config.json", "tokenizer_config.json", SETTINGS];

/// A file of a repository.
#[derive(Debug)]
struct Listed {
    bytes: u64,
    /// The SHA-256 that the repository states; large files have one.
    sha256: Option<String>,
}

/// Puts `model` into the folder `dest` unless it is there already, and says what was verified.
///
/// `revision` is a commit, a branch or a tag to fetch instead of the pinned commit. The folder appears by one rename, so an
/// interrupted download leaves no partial folder.
pub(crate) fn fetch(home: &str, model: &Published, revision: Option<&str>, dest: &Path) -> Result<String> {
    if dest.join(WEIGHTS).is_file() {
        return check(model, revision, dest);
    }
    let partial = partial_sibling(dest)?;
    remove_dir(&partial)?;
    let fetched = fetch_into(home, model, revision, &partial).and_then(|verified| {
        fs::rename(&partial, dest)
            .with_context(|| format!("cannot move the model to {}; is a folder there?", dest.display()))?;
        Ok(verified)
    });
    remove_dir(&partial)?;
    fetched
}

/// Fetches `model` into `folder`, which may be left partly filled.
pub(crate) fn fetch_into(
    home: &str,
    model: &Published,
    revision: Option<&str>,
    folder: &Path,
) -> Result<String> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    fetch_files(home, model, revision, folder).with_context(|| {
        let failed = format!("cannot fetch {} of {home}", model.repository);
        match revision {
            Some(revision) => format!("{failed} at {revision}"),
            None => format!(
                "{failed} at the pinned commit {}; if it or a file of it is gone, `cargo xtask model {} --revision main` \
                 fetches the newest commit",
                model.revision, model.name
            ),
        }
    })
}

fn fetch_files(home: &str, model: &Published, revision: Option<&str>, folder: &Path) -> Result<String> {
    let commit = match revision {
        Some(revision) => commit_of(home, model.repository, revision, folder)?,
        None => model.revision.to_owned(),
    };
    let listing = list(home, model.repository, &commit, folder)?;
    let get = |file: &str| -> Result<(String, String)> {
        let listed = listing.get(file).with_context(|| format!("commit {commit} has no file {file}"))?;
        let url = format!("{home}/{}/resolve/{commit}/{file}", model.repository);
        let sha256 = download(&url, listed, &folder.join(file))?;
        Ok((file.to_owned(), sha256))
    };
    let mut digests = BTreeMap::new();
    for file in OPTIONAL.into_iter().filter(|&file| listing.contains_key(file)) {
        digests.extend([get(file)?]);
    }
    // The weights are last, because they are the largest.
    for file in modules(folder)?.iter().map(String::as_str).chain(NEEDED) {
        digests.extend([get(file)?]);
    }
    if let (Some(known), Some(found)) = (model.weights_sha256, digests.get(WEIGHTS)) {
        same_sha256(WEIGHTS, found, known)?;
    }
    let added_prompts = add_prompts(folder, model)?;
    if added_prompts {
        digests.insert(SETTINGS.to_owned(), sha256_of(&folder.join(SETTINGS))?);
    }
    let origin = json!({ "repository": model.repository, "revision": commit, "sha256": digests });
    write_json(&folder.join(ORIGIN), &origin)?;
    let weights = digests.get(WEIGHTS).map(String::as_str).unwrap_or_default();
    Ok(report(model, &commit, weights, added_prompts))
}

/// Says what was verified, and by whose word.
fn report(model: &Published, commit: &str, weights: &str, added_prompts: bool) -> String {
    let pinned = if commit == model.revision { "which is pinned" } else { "which is not the pinned one" };
    let digest = match model.weights_sha256 {
        Some(_) => "as known beforehand",
        None => "as its repository states; no digest was known beforehand",
    };
    let prompts = if added_prompts {
        format!("\nthe prompts of its card were added to {SETTINGS}")
    } else {
        String::new()
    };
    format!(
        "{} at commit {commit}, {pinned}\n{WEIGHTS} has sha256 {weights}, {digest}; {ORIGIN} keeps both{prompts}",
        model.repository
    )
}

/// Checks a folder that exists: its files against its own record, and its weights against what is known of the model.
pub(crate) fn check(model: &Published, revision: Option<&str>, folder: &Path) -> Result<String> {
    let origin = folder.join(ORIGIN);
    let checked = if origin.is_file() {
        check_fetched(model, revision, folder, &origin)
    } else {
        check_placed(model, revision, folder)
    };
    checked.with_context(|| {
        format!(
            "{} does not hold the requested {}; remove it to fetch the model",
            folder.display(),
            model.name
        )
    })
}

fn check_fetched(model: &Published, revision: Option<&str>, folder: &Path, origin: &Path) -> Result<String> {
    let origin = read_json(origin)?;
    let repository = text(&origin, "/repository").unwrap_or_default();
    ensure!(repository == model.repository, "it is from {repository}");
    let commit = text(&origin, "/revision").unwrap_or_default();
    if let Some(revision) = revision {
        ensure!(revision == commit, "it is from commit {commit}, not from {revision}");
    }
    let digests = origin.pointer("/sha256").and_then(Value::as_object);
    let digests = digests.with_context(|| format!("its {ORIGIN} has no digests"))?;
    ensure!(digests.contains_key(WEIGHTS), "its {ORIGIN} has no digest of {WEIGHTS}");
    for (file, recorded) in digests {
        let known = model.weights_sha256.filter(|_| file == WEIGHTS).or(recorded.as_str());
        check_sha256(folder, file, known.unwrap_or_default())?;
    }
    Ok(format!("{repository} at commit {commit} is there already, with the files that were fetched"))
}

/// A folder that was placed by hand has no record.
fn check_placed(model: &Published, revision: Option<&str>, folder: &Path) -> Result<String> {
    ensure!(revision.is_none(), "it has no {ORIGIN}, so its commit is not known");
    let known = model.weights_sha256.with_context(|| {
        format!("it has no {ORIGIN}, and no digest of its weights is known, so it cannot be checked")
    })?;
    check_sha256(folder, WEIGHTS, known)?;
    Ok(format!("{} is there already, with weights that have the known digest", model.name))
}

/// The commit of a branch, a tag or a commit of a repository.
fn commit_of(home: &str, repository: &str, revision: &str, scratch: &Path) -> Result<String> {
    let revision = utf8_percent_encode(revision, NON_ALPHANUMERIC);
    let answer = get_json(&format!("{home}/api/models/{repository}/revision/{revision}"), scratch)?;
    let commit = text(&answer, "/sha").context("the repository states no commit")?;
    let is_commit = commit.len() == 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    ensure!(is_commit, "{commit} is not a commit");
    Ok(commit.to_owned())
}

/// The files of a commit.
fn list(home: &str, repository: &str, revision: &str, scratch: &Path) -> Result<BTreeMap<String, Listed>> {
    let url = format!("{home}/api/models/{repository}/tree/{revision}?recursive=true");
    let answer = get_json(&url, scratch)?;
    let entries = answer.as_array().context("the repository lists no files")?;
    let files = entries.iter().filter(|entry| text(entry, "/type") == Some("file")).filter_map(|entry| {
        let bytes = entry.pointer("/size").and_then(Value::as_u64)?;
        let sha256 = text(entry, "/lfs/oid").map(str::to_owned);
        Some((text(entry, "/path")?.to_owned(), Listed { bytes, sha256 }))
    });
    Ok(files.collect())
}

/// The files of the modules that modules.json names, if there is one.
fn modules(folder: &Path) -> Result<Vec<String>> {
    let path = folder.join("modules.json");
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let modules = read_json(&path)?;
    let mut files = Vec::new();
    for module in modules.as_array().context("modules.json has no list")? {
        let class = text(module, "/type").and_then(|class| class.rsplit('.').next()).unwrap_or_default();
        let path = text(module, "/path").unwrap_or_default();
        let is_name = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        ensure!(is_name, "the module path {path} is not the name of a folder");
        match class {
            "Transformer" if path.is_empty() => {}
            "Transformer" => bail!("a transformer in the folder {path} is not supported here"),
            "Normalize" => {}
            "Pooling" => files.push(format!("{path}/config.json")),
            "Dense" | "LayerNorm" => {
                files.extend(["config.json", WEIGHTS].map(|file| format!("{path}/{file}")));
            }
            _ => bail!("the module {class} is not supported"),
        }
    }
    Ok(files)
}

/// Writes the prompts that the model's card gives, unless the folder has some. Says whether it did.
fn add_prompts(folder: &Path, model: &Published) -> Result<bool> {
    let Some([query, document]) = model.prompts else { return Ok(false) };
    let path = folder.join(SETTINGS);
    let mut settings = if path.is_file() { read_json(&path)? } else { json!({}) };
    let has_some = settings.pointer("/prompts").and_then(Value::as_object).is_some_and(|prompts| {
        prompts.values().any(|prompt| prompt.as_str().is_some_and(|text| !text.is_empty()))
    });
    if has_some {
        return Ok(false);
    }
    let settings_map = settings.as_object_mut().with_context(|| format!("{SETTINGS} is not an object"))?;
    settings_map.insert("prompts".to_owned(), json!({ "query": query, "document": document }));
    write_json(&path, &settings)?;
    Ok(true)
}

/// Downloads a file, checks its size and what is stated of it, and returns its SHA-256.
fn download(url: &str, listed: &Listed, target: &Path) -> Result<String> {
    curl(url, target)?;
    let bytes = fs::metadata(target).with_context(|| format!("cannot read {}", target.display()))?.len();
    ensure!(bytes == listed.bytes, "{url} has {bytes} bytes, not {}", listed.bytes);
    let found = sha256_of(target)?;
    if let Some(expected) = &listed.sha256 {
        ensure!(&found == expected, "{url} has sha256 {found}, not {expected}");
    }
    Ok(found)
}

fn get_json(url: &str, scratch: &Path) -> Result<Value> {
    let target = scratch.join("answer.json");
    curl(url, &target)?;
    let value = read_json(&target)?;
    fs::remove_file(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    Ok(value)
}

/// Downloads `url`. An interrupted transfer is continued twice; one below 1 kB/s for 30 s counts as interrupted. There is no
/// limit on the total time.
fn curl(url: &str, target: &Path) -> Result<()> {
    make_parent(target)?;
    let mut curl = Command::new("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--continue-at", "-"])
        .args(["--retry", "2", "--retry-all-errors", "--retry-delay", "1"])
        .args(["--connect-timeout", "5", "--speed-limit", "1000", "--speed-time", "30"]);
    if url.starts_with("https:") {
        curl.args(["--proto", "=https", "--proto-redir", "=https"]);
    }
    quietly(curl.arg("--output").arg(target).arg(url)).with_context(|| format!("cannot download {url}"))
}

/// The text at a pointer into `value`.
fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| format!("{} is not JSON", path.display()))
}

fn write_json(path: &Path, value: &Value) -> Result<()> {
    fs::write(path, format!("{value:#}\n")).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
#[path = "fetch_tests.rs"]
mod tests;

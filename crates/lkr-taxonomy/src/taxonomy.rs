use std::{
    collections::HashMap,
    fs::File,
    io::Read as _,
    path::Path,
    sync::{Arc, LazyLock},
};

use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::{
    Category, Error, ErrorKind, Result, json,
    node::{Fault, Node},
    read, yaml,
};

const OPERATION: &str = "load taxonomy";
const MAX_BYTES: usize = 1024 * 1024;
const BUILT_IN: &str = include_str!("default.yaml");

/// The categories that documents can have. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Taxonomy(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    categories: Vec<Category>,
    by_name: HashMap<String, usize>,
    fingerprint: String,
}

impl Taxonomy {
    /// The taxonomy that is there without a file: what teams commonly keep in a knowledge base.
    #[must_use]
    pub fn built_in() -> Self {
        // A test loads it; a mistake in it leaves documents without a category, but no server without a start.
        static BUILT: LazyLock<Taxonomy> =
            LazyLock::new(|| parse(BUILT_IN, yaml::parse).unwrap_or_else(|_| Taxonomy::new(Vec::new())));
        BUILT.clone()
    }

    /// Reads `{categories: [{id, name, description, keywords?, parent?}, …]}` in YAML. The source of an error begins
    /// with the line that is wrong.
    pub fn from_yaml(text: &str) -> Result<Self> {
        parse(text, yaml::parse).map_err(|fault| Error::new(ErrorKind::Invalid, OPERATION, fault))
    }

    /// Reads the same in JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        parse(text, json::parse).map_err(|fault| Error::new(ErrorKind::Invalid, OPERATION, fault))
    }

    /// Reads a file: JSON where its name ends in `.json`, else YAML. The source of an error begins with the path
    /// and, where the content is wrong, the line: `taxonomy.yaml:12: …`.
    pub fn load(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = read_file(path)
            .map_err(|error| Error::new(ErrorKind::Unreadable, OPERATION, format!("{shown}: {error}")))?;
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let format = if is_json { json::parse } else { yaml::parse };
        decode(&bytes).and_then(|text| parse(text, format)).map_err(|Fault { line, message }| {
            Error::new(ErrorKind::Invalid, OPERATION, format!("{shown}:{line}: {message}"))
        })
    }

    fn new(categories: Vec<Category>) -> Self {
        let by_name = categories.iter().enumerate().map(|(at, category)| (category.name.clone(), at));
        let by_name = by_name.collect();
        let digest = Sha256::digest(json!(categories).to_string());
        let fingerprint = lkr_domain::hex(&digest);
        Self(Arc::new(Inner { categories, by_name, fingerprint }))
    }

    /// The categories in the order of the file.
    #[must_use]
    pub fn categories(&self) -> &[Category] {
        &self.0.categories
    }

    /// The category of this very name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Category> {
        self.0.by_name.get(name).and_then(|&at| self.0.categories.get(at))
    }

    /// The SHA-256 of the categories, in hex: what tells taxonomies apart, whatever the form of their files.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }
}

fn parse(text: &str, format: fn(&str) -> Result<Node, Fault>) -> Result<Taxonomy, Fault> {
    if text.len() > MAX_BYTES {
        return Err(too_long());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    read::categories(format(text)?).map(Taxonomy::new)
}

fn too_long() -> Fault {
    Fault::new(1, "the file is longer than 1 MiB")
}

/// What is in the file, as far as it takes to see that it is too long.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<&str, Fault> {
    // The cut may go through a character.
    if bytes.len() > MAX_BYTES {
        return Err(too_long());
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + good.iter().filter(|&&byte| byte == b'\n').count();
        Fault::new(line, "the file is not UTF-8 from here on")
    })
}

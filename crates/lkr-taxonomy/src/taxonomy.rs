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
    node::{Node, ParseError},
    validate, yaml,
};

const OPERATION: &str = "load taxonomy";
const MAX_BYTES: usize = 1024 * 1024;
const BUILT_IN_YAML: &str = include_str!("default.yaml");

/// The categories that documents can have. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Taxonomy(Arc<TaxonomyState>);

#[derive(Debug)]
struct TaxonomyState {
    categories: Vec<Category>,
    by_name: HashMap<String, usize>,
    fingerprint: String,
}

impl Taxonomy {
    /// The default taxonomy, used if no file is configured: common categories of a team's knowledge base.
    #[must_use]
    pub fn built_in() -> Self {
        // A test checks that the file parses. If it did not, documents would get no category, but servers would start.
        static BUILT_IN_TAXONOMY: LazyLock<Taxonomy> =
            LazyLock::new(|| parse(BUILT_IN_YAML, yaml::parse).unwrap_or_else(|_| Taxonomy::new(Vec::new())));
        BUILT_IN_TAXONOMY.clone()
    }

    /// Parses `{categories: [{id, name, description, keywords?, parent?}, …]}` from YAML. The source of an error begins
    /// with the line.
    pub fn from_yaml(text: &str) -> Result<Self> {
        parse(text, yaml::parse).map_err(|parse_error| Error::new(ErrorKind::Invalid, OPERATION, parse_error))
    }

    /// Parses the same structure from JSON.
    pub fn from_json(text: &str) -> Result<Self> {
        parse(text, json::parse).map_err(|parse_error| Error::new(ErrorKind::Invalid, OPERATION, parse_error))
    }

    /// Loads a file: JSON if its name ends in `.json`, otherwise YAML. The source of an error begins with the path, and
    /// with the line if the content is invalid: `taxonomy.yaml:12: …`.
    pub fn load(path: &Path) -> Result<Self> {
        let path_display = path.display();
        let bytes = read_file(path).map_err(|error| {
            Error::new(ErrorKind::Unreadable, OPERATION, format!("{path_display}: {error}"))
        })?;
        let is_json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        let format = if is_json { json::parse } else { yaml::parse };
        decode(&bytes).and_then(|text| parse(text, format)).map_err(|ParseError { line, message }| {
            Error::new(ErrorKind::Invalid, OPERATION, format!("{path_display}:{line}: {message}"))
        })
    }

    fn new(categories: Vec<Category>) -> Self {
        let by_name = categories.iter().enumerate().map(|(at, category)| (category.name.clone(), at));
        let by_name = by_name.collect();
        let digest = Sha256::digest(json!(categories).to_string());
        let fingerprint = lkr_domain::hex(&digest);
        Self(Arc::new(TaxonomyState { categories, by_name, fingerprint }))
    }

    /// The categories in file order.
    #[must_use]
    pub fn categories(&self) -> &[Category] {
        &self.0.categories
    }

    /// The category with exactly this name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Category> {
        self.0.by_name.get(name).and_then(|&at| self.0.categories.get(at))
    }

    /// The SHA-256 of the categories, in hex. It does not depend on the file format.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.0.fingerprint
    }
}

fn parse(text: &str, format: fn(&str) -> Result<Node, ParseError>) -> Result<Taxonomy, ParseError> {
    if text.len() > MAX_BYTES {
        return Err(file_too_long());
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    validate::parse_categories(format(text)?).map(Taxonomy::new)
}

fn file_too_long() -> ParseError {
    ParseError::new(1, "the file is longer than 1 MiB")
}

/// Reads a file, but at most one byte beyond the limit.
fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn decode(bytes: &[u8]) -> Result<&str, ParseError> {
    // Check the length first: the read may have ended inside a character.
    if bytes.len() > MAX_BYTES {
        return Err(file_too_long());
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
        ParseError::new(line, "invalid UTF-8")
    })
}

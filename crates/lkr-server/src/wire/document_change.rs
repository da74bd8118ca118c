use std::collections::BTreeMap;

use lkr::{DocumentChange, MAX_METADATA_KEYS, RESERVED_METADATA, Taxonomy, check_line};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{document_input::limit_exceeded, formats::SpaceText};
use crate::{
    error::ApiError,
    http::{named_space, string_map},
};

/// The most metadata keys in a change: enough to remove all keys of a document and set as many new ones.
const MAX_KEYS: usize = 2 * MAX_METADATA_KEYS;

/// A change of a document. Keys that are absent or null stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentChangeInput {
    /// The title, at most 4,096 characters and not blank.
    #[schema(max_length = 4096, min_length = 1, pattern = "\\S")]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters.
    #[schema(max_length = 4096)]
    source: Option<String>,
    /// The space to which the document moves.
    #[schema(value_type = Option<SpaceText>)]
    space: Option<String>,
    /// A category of the taxonomy, or empty for none. A reclassification keeps it.
    category: Option<String>,
    /// Metadata keys to set, at most 128; null removes a key.
    #[serde(default, deserialize_with = "string_map")]
    metadata: Option<BTreeMap<String, Option<String>>>,
}

impl DocumentChangeInput {
    /// The names of the changed fields. Metadata keys may be long and many, so they are counted.
    pub(crate) fn changed_names(&self) -> Vec<String> {
        let fields = [
            ("title", &self.title),
            ("source", &self.source),
            ("space", &self.space),
            ("category", &self.category),
        ];
        let fields = fields.into_iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name.to_owned());
        let metadata = self.metadata.as_ref().filter(|metadata| !metadata.is_empty());
        fields.chain(metadata.map(|metadata| format!("metadata ({})", metadata.len()))).collect()
    }

    /// Checks the change.
    pub(crate) fn check(self, taxonomy: &Taxonomy) -> Result<DocumentChange, ApiError> {
        let Self { title, source, space, category, metadata } = self;
        let space = space.map(named_space).transpose()?;
        if title.as_ref().is_some_and(|title| title.trim().is_empty()) {
            return Err(ApiError::invalid("title is blank"));
        }
        for (name, line) in [("title", &title), ("source", &source)] {
            line.as_ref().map_or(Ok(()), |line| check_line(name, line).map_err(limit_exceeded))?;
        }
        if let Some(category) = category.as_ref().filter(|name| !name.is_empty())
            && taxonomy.by_name(category).is_none()
        {
            let shown: String = category.chars().take(100).collect();
            return Err(ApiError::invalid(format!(
                "category {shown:?} is not in the taxonomy: see GET /api/v1/knowledge/categories"
            )));
        }
        let metadata = metadata.unwrap_or_default();
        if metadata.len() > MAX_KEYS {
            let keys = metadata.len();
            return Err(ApiError::invalid(format!(
                "metadata has {keys} keys, at most {MAX_KEYS} can be changed at once"
            )));
        }
        if let Some(key) = RESERVED_METADATA.iter().find(|key| metadata.contains_key(**key)) {
            return Err(ApiError::invalid(format!("metadata key {key} is reserved")));
        }
        Ok(DocumentChange { title, source, space, category, metadata })
    }
}

#[cfg(test)]
mod tests {
    use lkr::MAX_LINE_CHARS;

    use super::*;

    fn check(input: &str) -> Result<DocumentChange, ApiError> {
        serde_json::from_str::<DocumentChangeInput>(input).unwrap().check(&Taxonomy::built_in())
    }

    #[test]
    fn absent_and_null_keys_change_nothing() {
        for input in ["{}", r#"{"title": null, "source": null, "category": null, "metadata": null}"#] {
            assert_eq!(check(input).unwrap(), DocumentChange::default());
        }
    }

    #[test]
    fn blank_title_unknown_category_reserved_key_and_too_many_keys_are_refused() {
        for input in [
            r#"{"title": " "}"#,
            r#"{"category": "no such thing"}"#,
            r#"{"metadata": {"raw_file_path": "/etc/passwd"}}"#,
            r#"{"metadata": {"original_filename": null}}"#,
        ] {
            assert!(check(input).is_err(), "{input}");
        }
        let keys: Vec<_> = (0..=MAX_KEYS).map(|n| format!(r#""{n}": null"#)).collect();
        assert!(check(&format!(r#"{{"metadata": {{{}}}}}"#, keys.join(","))).is_err());
        assert!(check(&format!(r#"{{"source": "{}"}}"#, "x".repeat(MAX_LINE_CHARS + 1))).is_err());
    }

    #[test]
    fn changed_names_lists_fields_and_counts_metadata_keys() {
        let input = r#"{"title": "T", "category": "", "metadata": {"a": "1", "b": null}}"#;
        let input: DocumentChangeInput = serde_json::from_str(input).unwrap();
        assert_eq!(input.changed_names(), ["title", "category", "metadata (2)"]);
        let change = input.check(&Taxonomy::built_in()).unwrap();
        assert_eq!(change.category.as_deref(), Some(""));
        assert_eq!(change.metadata["a"].as_deref(), Some("1"));
        assert_eq!(change.metadata["b"], None);
    }
}

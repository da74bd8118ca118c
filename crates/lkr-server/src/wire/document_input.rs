use std::collections::BTreeMap;

use lkr::{
    LimitExceeded, MAX_NEW_TEXT_BYTES, NewDocument, check_line, check_properties, check_text, drop_reserved,
};
use serde::Deserialize;
use utoipa::ToSchema;

use super::submission_options::SubmissionOptions;
use crate::{error::ApiError, http::string_map};

/// A document to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentInput {
    /// The text: at most 16 MiB of UTF-8, with at least one character other than white space.
    #[schema(min_length = 1, pattern = "\\S")]
    text: String,
    /// The title, at most 4,096 characters. If it is blank, the first heading or line is used.
    #[schema(max_length = 4096)]
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters.
    #[schema(max_length = 4096)]
    source: Option<String>,
    /// Metadata: at most 64 keys. Title, source and metadata together may take 256 KiB as JSON.
    #[serde(default, deserialize_with = "string_map")]
    metadata: Option<BTreeMap<String, String>>,
    /// The space of a new document, `default` if absent. A replacement stays where the document is.
    space: Option<String>,
    /// Ingest the document even if the settings detect a duplicate.
    force: Option<bool>,
    /// Replace the newest live document with the same source, if the source is not empty and the caller may change that
    /// document.
    upsert: Option<bool>,
}

impl DocumentInput {
    /// The client's options.
    pub(crate) fn options(&self) -> SubmissionOptions {
        SubmissionOptions {
            force: self.force.unwrap_or_default(),
            upsert: self.upsert.unwrap_or_default(),
            space: self.space.clone(),
        }
    }

    /// Checks the document. Returns it with warnings for the client.
    pub(crate) fn check(self) -> Result<(NewDocument, Vec<String>), ApiError> {
        let Self { text, title, source, metadata, .. } = self;
        let (title, source) = (title.unwrap_or_default(), source.unwrap_or_default());
        check_text(&text, MAX_NEW_TEXT_BYTES).map_err(limit_exceeded)?;
        check_line("title", &title).map_err(limit_exceeded)?;
        check_line("source", &source).map_err(limit_exceeded)?;
        let (mut metadata, mut warnings) = (metadata.unwrap_or_default(), Vec::new());
        drop_reserved(&mut metadata, &mut warnings);
        check_properties(&title, &source, &metadata).map_err(limit_exceeded)?;
        Ok((NewDocument { text, title, source, metadata }, warnings))
    }
}

/// 413 for a size in bytes, 400 for everything else.
pub(crate) fn limit_exceeded(exceeded: LimitExceeded) -> ApiError {
    let message = exceeded.to_string();
    if exceeded.is_size() { ApiError::too_large(message) } else { ApiError::invalid(message) }
}

#[cfg(test)]
mod tests {
    use actix_web::http::StatusCode;
    use lkr::MAX_PROPERTIES_BYTES;

    use super::*;

    fn input(text: &str) -> DocumentInput {
        DocumentInput {
            text: text.to_owned(),
            title: None,
            source: None,
            metadata: None,
            space: None,
            force: None,
            upsert: None,
        }
    }

    fn keys(count: usize) -> BTreeMap<String, String> {
        (0..count).map(|n| (n.to_string(), String::new())).collect()
    }

    #[test]
    fn reserved_metadata_keys_are_dropped_with_a_warning_and_do_not_count() {
        let mut metadata = keys(64);
        metadata.insert("raw_file_path".to_owned(), "/etc/passwd".to_owned());
        let (document, warnings) = DocumentInput { metadata: Some(metadata), ..input("x") }.check().unwrap();
        assert_eq!(document.metadata, keys(64));
        assert_eq!(warnings, ["metadata key raw_file_path is reserved and was dropped"]);
    }

    #[test]
    fn duplicate_metadata_key_is_refused() {
        let parse = |metadata: &str| {
            serde_json::from_str::<DocumentInput>(&format!(r#"{{"text": "x", "metadata": {metadata}}}"#))
        };
        assert_eq!(parse("null").unwrap().metadata, None);
        let metadata = parse(r#"{"a": "1", "b": "2"}"#).unwrap().metadata.unwrap();
        assert_eq!(metadata.keys().collect::<Vec<_>>(), ["a", "b"]);
        let error = parse(r#"{"a": "1", "a": "2"}"#).unwrap_err().to_string();
        assert!(error.contains(r#"duplicate key "a""#), "{error}");
        let many: Vec<String> = (0..2_000).map(|n| format!(r#""{n}": """#)).collect();
        let error = parse(&format!("{{{}}}", many.join(", "))).unwrap_err().to_string();
        assert!(error.contains("more than 1024 keys"), "{error}");
        for wrong in [r#"{"a": 1}"#, r#"[["a", "1"]]"#, r#""a""#] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn blank_text_and_fields_over_their_limits_are_refused() {
        let status = |input: DocumentInput| input.check().unwrap_err().status;
        assert_eq!(status(input(" \n\u{3000}")), StatusCode::BAD_REQUEST);
        assert_eq!(status(DocumentInput { metadata: Some(keys(65)), ..input("x") }), StatusCode::BAD_REQUEST);
        assert_eq!(
            status(DocumentInput { title: Some("t".repeat(4_097)), ..input("x") }),
            StatusCode::BAD_REQUEST
        );
        assert_eq!(status(input(&"é".repeat(MAX_NEW_TEXT_BYTES / 2 + 1))), StatusCode::PAYLOAD_TOO_LARGE);
        assert!(input(&"é".repeat(MAX_NEW_TEXT_BYTES / 2)).check().is_ok());
        // A control character takes six bytes of JSON.
        for value in ["v".repeat(MAX_PROPERTIES_BYTES), "\u{1}".repeat(MAX_PROPERTIES_BYTES / 6)] {
            let metadata = BTreeMap::from([("k".to_owned(), value)]);
            assert_eq!(
                status(DocumentInput { metadata: Some(metadata), ..input("x") }),
                StatusCode::PAYLOAD_TOO_LARGE
            );
        }
    }
}

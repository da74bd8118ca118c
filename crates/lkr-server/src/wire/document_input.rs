use std::collections::BTreeMap;

use lkr::{LimitExceeded, MAX_LINE_CHARS, NewDocument, check_properties, drop_reserved};
use serde::Deserialize;
use utoipa::ToSchema;

use super::submission_options::SubmissionOptions;
use crate::{error::ApiError, http::string_map};

/// The longest text: 16 MiB of UTF-8.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// A document to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DocumentInput {
    /// The text: at most 16 MiB of UTF-8, with at least one character other than white space.
    #[schema(min_length = 1)]
    text: String,
    /// The title, at most 4,096 characters. If it is blank, the first heading or line is used.
    title: Option<String>,
    /// Where the document comes from, at most 4,096 characters.
    source: Option<String>,
    /// Metadata: at most 64 keys. Title, source and metadata together may take 256 KiB as JSON.
    #[serde(default, deserialize_with = "string_map")]
    metadata: Option<BTreeMap<String, String>>,
    /// Ingest the document even if the settings detect a duplicate.
    force: Option<bool>,
    /// Replace the newest live document with the same source, if the source is not empty and the caller may change that
    /// document.
    upsert: Option<bool>,
}

impl DocumentInput {
    /// The client's options.
    pub(crate) fn options(&self) -> SubmissionOptions {
        SubmissionOptions { force: self.force.unwrap_or_default(), upsert: self.upsert.unwrap_or_default() }
    }

    /// Checks the document. Returns it with warnings for the client.
    pub(crate) fn check(self) -> Result<(NewDocument, Vec<String>), ApiError> {
        let Self { text, title, source, metadata, .. } = self;
        let (title, source) = (title.unwrap_or_default(), source.unwrap_or_default());
        if text.trim().is_empty() {
            return Err(ApiError::invalid(
                "text is blank: at least one character other than white space is required",
            ));
        }
        if text.len() > MAX_TEXT_BYTES {
            return Err(ApiError::too_large(format!(
                "text has {} bytes of UTF-8, at most {MAX_TEXT_BYTES} are allowed",
                text.len()
            )));
        }
        check_line("title", &title)?;
        check_line("source", &source)?;
        let (mut metadata, mut warnings) = (metadata.unwrap_or_default(), Vec::new());
        drop_reserved(&mut metadata, &mut warnings);
        check_properties(&title, &source, &metadata).map_err(refused_properties)?;
        Ok((NewDocument { text, title, source, metadata }, warnings))
    }
}

pub(crate) fn check_line(name: &str, line: &str) -> Result<(), ApiError> {
    let length = line.chars().count();
    if length <= MAX_LINE_CHARS {
        return Ok(());
    }
    Err(ApiError::invalid(format!("{name} has {length} characters, at most {MAX_LINE_CHARS} are allowed")))
}

/// The error of properties that are too many or too long.
pub(crate) fn refused_properties(excess: LimitExceeded) -> ApiError {
    match excess {
        LimitExceeded::Keys(_) => ApiError::invalid(excess.to_string()),
        LimitExceeded::Bytes(_) => ApiError::too_large(excess.to_string()),
    }
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
        assert_eq!(status(input(&"é".repeat(MAX_TEXT_BYTES / 2 + 1))), StatusCode::PAYLOAD_TOO_LARGE);
        assert!(input(&"é".repeat(MAX_TEXT_BYTES / 2)).check().is_ok());
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

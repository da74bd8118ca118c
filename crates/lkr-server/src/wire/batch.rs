use std::fmt;

use lkr::{NewDocument, Task};
use serde::{Deserialize, Deserializer, Serialize, de};
use utoipa::ToSchema;

use super::{document_input::DocumentInput, submission_options::SubmissionOptions, tasks::Accepted};
use crate::error::ApiError;

/// The most documents in a batch.
const MAX_DOCUMENTS: usize = 100;

/// Documents to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchInput {
    /// 1 to 100 documents. Of several with `upsert` and the same source, the last one counts.
    #[serde(deserialize_with = "bounded")]
    #[schema(min_items = 1, max_items = 100)]
    documents: Vec<DocumentInput>,
}

impl BatchInput {
    /// Checks the documents. Returns each with warnings for the client and the client's options.
    pub(crate) fn check(self) -> Result<Vec<(NewDocument, Vec<String>, SubmissionOptions)>, ApiError> {
        let length = self.documents.len();
        if !(1..=MAX_DOCUMENTS).contains(&length) {
            return Err(ApiError::invalid(format!(
                "documents has {length} items, 1 to {MAX_DOCUMENTS} are allowed"
            )));
        }
        let check = |(at, input): (usize, DocumentInput)| {
            let options = input.options();
            let checked = input.check();
            let (document, warnings) = checked.map_err(|error| ApiError {
                message: format!("documents[{at}]: {}", error.message),
                ..error
            })?;
            Ok((document, warnings, options))
        };
        self.documents.into_iter().enumerate().map(check).collect()
    }
}

/// Deserialises documents, at most one beyond the limit.
fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<DocumentInput>, D::Error> {
    struct Visitor;

    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Vec<DocumentInput>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of documents")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut documents = Vec::new();
            loop {
                match seq.next_element()? {
                    Some(document) if documents.len() <= MAX_DOCUMENTS => documents.push(document),
                    Some(_) => {
                        return Err(de::Error::custom(format_args!("more than {MAX_DOCUMENTS} items")));
                    }
                    None => return Ok(documents),
                }
            }
        }
    }

    deserializer.deserialize_seq(Visitor)
}

/// The accepted documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAccepted {
    /// The tasks, in the order of the documents.
    tasks: Vec<Accepted>,
}

impl From<&[Task]> for BatchAccepted {
    fn from(tasks: &[Task]) -> Self {
        Self { tasks: tasks.iter().map(Accepted::from).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::parse_json;

    fn check(documents: &str) -> Result<usize, String> {
        let body = format!(r#"{{"documents": {documents}}}"#);
        let input: BatchInput = parse_json(body.as_bytes()).map_err(|error| error.message)?;
        input.check().map(|checked| checked.len()).map_err(|error| error.message)
    }

    #[test]
    fn batch_error_names_the_position_of_the_first_wrong_document() {
        let good = r#"{"text": "x"}"#;
        assert_eq!(check(&format!("[{good}, {good}]")), Ok(2));
        for (bad, reason) in [
            (r#"{"text": " "}"#, "text is blank"),
            (r#"{"text": 1}"#, "invalid type"),
            (r#"{"title": "x"}"#, "missing field"),
            (r#"{"text": "x", "colour": "red"}"#, "unknown field"),
            (r#"{"text": "x", "metadata": {"a": "1", "a": "2"}}"#, "duplicate key"),
            ("null", "invalid type"),
        ] {
            let error = check(&format!("[{good}, {good}, {good}, {bad}, {bad}]")).unwrap_err();
            assert!(error.starts_with("documents[3]") && error.contains(reason), "{bad}: {error}");
            assert_eq!(error.matches("documents").count(), 1, "{error}");
        }
    }

    #[test]
    fn batch_of_1_to_100_documents_is_accepted() {
        let many = |count| format!("[{}]", vec![r#"{"text": "x"}"#; count].join(","));
        assert_eq!(check(&many(100)), Ok(100));
        for count in [0, 101, 500] {
            let error = check(&many(count)).unwrap_err();
            assert!(error.starts_with("documents") && error.contains("items"), "{error}");
        }
    }
}

use std::fmt;

use lkr::{NewDocument, Task};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, IgnoredAny},
};
use utoipa::ToSchema;

use super::{document_input::DocumentInput, submission_options::SubmissionOptions, tasks::Accepted};
use crate::{error::ApiError, http::JsonObject};

/// The most documents in a batch.
const MAX_DOCUMENTS: usize = 100;

/// Documents to ingest.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchInput {
    /// 1 to 100 documents. Of several with `upsert` and the same source, the last one counts.
    #[serde(deserialize_with = "checked")]
    #[schema(value_type = Vec<DocumentInput>, min_items = 1, max_items = 100)]
    documents: Result<Vec<CheckedDocument>, ApiError>,
}

/// A document with warnings for the client and the client's options.
type CheckedDocument = (NewDocument, Vec<String>, SubmissionOptions);

impl BatchInput {
    /// The documents, or what is wrong with the first bad one.
    pub(crate) fn check(self) -> Result<Vec<CheckedDocument>, ApiError> {
        let documents = self.documents?;
        if documents.is_empty() {
            return Err(ApiError::invalid(format!(
                "documents has 0 items, 1 to {MAX_DOCUMENTS} are allowed"
            )));
        }
        Ok(documents)
    }
}

/// Deserialises and checks documents one by one, so that the first bad one is known whatever is wrong with it.
fn checked<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Result<Vec<CheckedDocument>, ApiError>, D::Error> {
    struct Visitor;

    impl<'de> de::Visitor<'de> for Visitor {
        type Value = Result<Vec<CheckedDocument>, ApiError>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of documents")
        }

        fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut documents = Vec::new();
            while let Some(JsonObject(input)) = seq.next_element()? {
                if documents.len() == MAX_DOCUMENTS {
                    return Err(de::Error::custom(format_args!("more than {MAX_DOCUMENTS} items")));
                }
                match check(documents.len(), input) {
                    Ok(document) => documents.push(document),
                    Err(error) => {
                        while seq.next_element::<IgnoredAny>()?.is_some() {}
                        return Ok(Err(error));
                    }
                }
            }
            Ok(Ok(documents))
        }
    }

    deserializer.deserialize_seq(Visitor)
}

fn check(at: usize, input: DocumentInput) -> Result<CheckedDocument, ApiError> {
    let options = input.options();
    let named =
        |error: ApiError| ApiError { message: format!("documents[{at}]: {}", error.message), ..error };
    let (document, warnings) = input.check().map_err(named)?;
    Ok((document, warnings, options))
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
            (r#"["x", null, null, null, null, null, null]"#, "invalid type"),
        ] {
            for later in [r#"{"text": " "}"#, r#"{"text": 1}"#] {
                let error = check(&format!("[{good}, {good}, {good}, {bad}, {later}]")).unwrap_err();
                assert!(error.starts_with("documents[3]") && error.contains(reason), "{bad}: {error}");
                assert_eq!(error.matches("documents").count(), 1, "{error}");
            }
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

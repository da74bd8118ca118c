//! The form of error bodies. It follows from the path: below the path of another protocol, every error has that
//! protocol's form, whether a handler, the router or a middleware answers it.

use lkr_mcp::json_rpc::{INTERNAL_ERROR, INVALID_REQUEST, error_response};
use serde_json::Value;

use super::{envelope::envelope_body, request_id::RequestId};
use crate::{
    error::{ApiError, ErrorCode},
    wire::{dify::error::DifyError, openai::error::OpenAiError},
};

/// The form of an error body. A further protocol is a variant with a row in [`PATHS`] and an arm in each method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    /// The envelope.
    Envelope,
    /// The error object of the OpenAI API.
    OpenAi,
    /// The error object of Dify's External Knowledge API.
    Dify,
    /// The error of JSON-RPC, for the Model Context Protocol.
    JsonRpc,
}

/// The paths below which errors are not in the envelope.
const PATHS: [(&str, ErrorFormat); 3] = [
    ("/api/v1/openai", ErrorFormat::OpenAi),
    ("/api/v1/dify", ErrorFormat::Dify),
    ("/mcp", ErrorFormat::JsonRpc),
];

impl ErrorFormat {
    /// The form of errors at a path.
    pub(crate) fn of_path(path: &str) -> Self {
        let is_below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('/'))
        };
        PATHS.into_iter().find(|(prefix, _)| is_below(prefix)).map_or(Self::Envelope, |(_, format)| format)
    }

    /// The body of an error.
    pub(super) fn body(self, error: &ApiError, id: &RequestId) -> Vec<u8> {
        let envelope = || envelope_body(error.code.number(), &error.message, b"null", id);
        self.other_body(error).unwrap_or_else(envelope)
    }

    /// The body of an error in another form than the envelope; `None` for the envelope.
    pub(crate) fn other_body(self, error: &ApiError) -> Option<Vec<u8>> {
        let body = match self {
            Self::Envelope => return None,
            Self::OpenAi => serde_json::to_vec(&OpenAiError::from(error)),
            Self::Dify => serde_json::to_vec(&DifyError::from(error)),
            Self::JsonRpc => serde_json::to_vec(&json_rpc_error(error)),
        };
        // A struct of strings and numbers is always JSON.
        Some(body.unwrap_or_default())
    }

    /// A code as the OpenAPI document names it in the description of a response.
    pub(crate) fn describe(self, code: ErrorCode) -> String {
        match self {
            Self::Envelope => format!("{} {}", code.number(), code.name()),
            Self::OpenAi => OpenAiError::code_name(code).to_owned(),
            Self::Dify | Self::JsonRpc => code.name().to_owned(),
        }
    }
}

/// An error that belongs to no request of JSON-RPC: the message was refused before it was read.
fn json_rpc_error(error: &ApiError) -> Value {
    let code = if error.status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
    error_response(&Value::Null, code, &error.message)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::ErrorSubject;

    fn body(path: &str, error: &ApiError) -> Value {
        serde_json::from_slice(&ErrorFormat::of_path(path).body(error, &RequestId::generate())).unwrap()
    }

    #[test]
    fn path_decides_the_form_of_an_error() {
        for (path, format) in [
            ("/api/v1/openai", ErrorFormat::OpenAi),
            ("/api/v1/openai/vector_stores/a/search", ErrorFormat::OpenAi),
            ("/api/v1/openais", ErrorFormat::Envelope),
            ("/api/v1/dify/", ErrorFormat::Dify),
            ("/api/v1/search", ErrorFormat::Envelope),
            ("/dify/retrieval", ErrorFormat::Envelope),
            ("/mcp", ErrorFormat::JsonRpc),
        ] {
            assert_eq!(ErrorFormat::of_path(path), format, "{path}");
        }
    }

    #[test]
    fn openai_error_names_the_wrong_parameter() {
        let error = ApiError::invalid("top_k: 0").about(ErrorSubject::Parameter("top_k".to_owned()));
        let expected = json!({"error": {
            "message": "top_k: 0", "type": "invalid_request_error", "param": "top_k", "code": "invalid_request",
        }});
        assert_eq!(body("/api/v1/openai/x", &error), expected);
        let error = ApiError::new(ErrorCode::Overloaded, "busy");
        assert_eq!(body("/api/v1/openai/x", &error)["error"]["type"], "server_error");
        assert_eq!(body("/api/v1/openai/x", &error)["error"]["param"], Value::Null);
    }

    #[test]
    fn dify_error_has_the_documented_codes() {
        let unauthenticated = || ApiError::new(ErrorCode::Unauthenticated, "no");
        for (error, code) in [
            (unauthenticated().about(ErrorSubject::CredentialForm), 1001),
            (unauthenticated(), 1002),
            (ApiError::forbidden("no"), 1002),
            (ApiError::not_found("no").about(ErrorSubject::Space), 2001),
            (ApiError::not_found("no"), 404),
            (ApiError::invalid("no"), 400),
            (ApiError::too_large("no"), 413),
            (ApiError::new(ErrorCode::Internal, "no"), 500),
        ] {
            assert_eq!(
                body("/api/v1/dify/retrieval", &error),
                json!({"error_code": code, "error_msg": "no"})
            );
        }
    }
}

//! Requests that rmcp cannot read as one of its own. It passes on those with wrong params as if their method was
//! unknown.

use rmcp::{
    ErrorData,
    model::{
        CallToolRequestParams, CustomRequest, ErrorCode, InitializeRequestParams, PaginatedRequestParams,
        ReadResourceRequestParams,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Why such a request is refused: its params are invalid, or the server has no such method.
pub(crate) fn refusal(request: &CustomRequest) -> ErrorData {
    let unknown = || ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method.clone(), None);
    invalid_params(request).unwrap_or_else(unknown)
}

/// What is wrong with the params; `None` if the server has no such method.
pub(crate) fn invalid_params(request: &CustomRequest) -> Option<ErrorData> {
    let CustomRequest { method, params, .. } = request;
    let misread = match method.as_str() {
        "initialize" => misread::<InitializeRequestParams>,
        "resources/read" => misread::<ReadResourceRequestParams>,
        "resources/list" | "resources/templates/list" | "tools/list" => misread::<PaginatedRequestParams>,
        "tools/call" => misread::<CallToolRequestParams>,
        _ => return None,
    };
    let reason = match params {
        None | Some(Value::Null) => format!("{method} needs params"),
        Some(params) => match misread(params) {
            Some(error) => format!("invalid params of {method}: {error}"),
            None => format!("invalid params of {method}"),
        },
    };
    Some(ErrorData::invalid_params(reason, None))
}

/// Why the params are not those of a method.
fn misread<T: DeserializeOwned>(params: &Value) -> Option<String> {
    T::deserialize(params).err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn known_method_with_wrong_params_has_invalid_params() {
        for (method, params, expected) in [
            ("initialize", None, "initialize needs params"),
            ("initialize", Some(json!({})), "invalid params of initialize: missing field `protocolVersion`"),
            ("resources/read", None, "resources/read needs params"),
            ("resources/read", Some(json!({ "uri": 1 })), "invalid type: integer `1`, expected a string"),
            ("tools/call", Some(json!({ "arguments": {} })), "missing field `name`"),
            ("tools/list", Some(json!({ "cursor": 1 })), "invalid type: integer `1`, expected a string"),
        ] {
            let error = refusal(&CustomRequest::new(method, params));
            assert_eq!(error.code, ErrorCode::INVALID_PARAMS, "{method}");
            assert!(error.message.contains(expected), "{method}: {}", error.message);
        }
    }

    #[test]
    fn method_that_the_server_has_not_is_unknown() {
        for method in ["prompts/get", "logging/setLevel", "no/such"] {
            let error = refusal(&CustomRequest::new(method, Some(json!({ "name": 1 }))));
            assert_eq!((error.code, &*error.message), (ErrorCode::METHOD_NOT_FOUND, method));
        }
    }
}

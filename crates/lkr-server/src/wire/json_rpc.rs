use serde::Serialize;

use crate::error::{ApiError, ErrorCode};

/// An error of JSON-RPC that belongs to no request: the message was refused before it was read.
#[derive(Debug, Serialize)]
pub(crate) struct JsonRpcError<'a> {
    jsonrpc: &'static str,
    /// Always null.
    id: Option<u64>,
    error: ErrorObject<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorObject<'a> {
    code: i32,
    message: &'a str,
}

impl<'a> From<&'a ApiError> for JsonRpcError<'a> {
    fn from(error: &'a ApiError) -> Self {
        // Invalid request, and internal error.
        let code = match error.code {
            ErrorCode::Overloaded | ErrorCode::Internal => -32_603,
            _ => -32_600,
        };
        Self { jsonrpc: "2.0", id: None, error: ErrorObject { code, message: &error.message } }
    }
}

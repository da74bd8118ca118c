use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorCode, ErrorSubject};

/// An error as the OpenAI API answers it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiError {
    /// What went wrong.
    error: OpenAiErrorDetail,
}

/// What went wrong.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OpenAiErrorDetail {
    /// The reason, for people.
    message: String,
    /// invalid_request_error, rate_limit_error or server_error
    r#type: &'static str,
    /// The part of the request that is wrong; null if the error is about no part.
    #[schema(required)]
    param: Option<String>,
    /// A name that programs can rely on.
    code: &'static str,
}

impl OpenAiError {
    /// The name of a code.
    pub(crate) fn code_name(code: ErrorCode) -> &'static str {
        match code {
            ErrorCode::Unauthenticated => "invalid_api_key",
            ErrorCode::RateLimited => "rate_limit_exceeded",
            other => other.name(),
        }
    }
}

impl From<&ApiError> for OpenAiError {
    fn from(error: &ApiError) -> Self {
        let param = match &error.subject {
            Some(ErrorSubject::Parameter(name)) => Some(name.clone()),
            _ => None,
        };
        let r#type = match error.code {
            ErrorCode::RateLimited => "rate_limit_error",
            _ if error.status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        let code = Self::code_name(error.code);
        Self { error: OpenAiErrorDetail { message: error.message.clone(), r#type, param, code } }
    }
}

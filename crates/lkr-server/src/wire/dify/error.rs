use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, ErrorCode, ErrorSubject};

/// The code of an `Authorization` header that is missing or malformed.
const INVALID_HEADER: u16 = 1001;
/// The code of a key that is not valid, or may not do this.
const NOT_AUTHORIZED: u16 = 1002;
/// The code of an unknown knowledge.
const NO_KNOWLEDGE: u16 = 2001;

/// An error as Dify expects it of an external knowledge API.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DifyError {
    /// 1001: the Authorization header is missing or malformed; 1002: authorization failed; 2001: the knowledge does not
    /// exist; otherwise the HTTP status.
    error_code: u16,
    /// The reason, for people.
    error_msg: String,
}

impl From<&ApiError> for DifyError {
    fn from(error: &ApiError) -> Self {
        let error_code = match (error.code, &error.subject) {
            (ErrorCode::Unauthenticated, Some(ErrorSubject::CredentialForm)) => INVALID_HEADER,
            (ErrorCode::Unauthenticated | ErrorCode::Forbidden | ErrorCode::PasswordChangeRequired, _) => {
                NOT_AUTHORIZED
            }
            (ErrorCode::NotFound, Some(ErrorSubject::Space)) => NO_KNOWLEDGE,
            _ => error.status.as_u16(),
        };
        Self { error_code, error_msg: error.message.clone() }
    }
}

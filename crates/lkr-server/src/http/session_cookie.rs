//! The cookie in which a browser keeps a session, and its protection against requests that other sites make a browser send
//! (CSRF).

use std::time::Duration;

use actix_web::{
    HttpRequest,
    http::{
        Method,
        header::{self, HeaderValue},
    },
};
use ipnet::IpNet;
use lkr_auth::is_csrf_token;

use crate::error::{ApiError, ErrorCode, ErrorSubject};

/// The name of the cookie of a request that came without TLS.
pub(crate) const PLAIN_COOKIE: &str = "lkr_session";

/// The name of the cookie of a request that came by TLS. Browsers accept the prefix from this host over TLS alone, so no
/// other host of the domain can plant a session.
pub(crate) const HOST_COOKIE: &str = "__Host-lkr_session";

/// The header with the CSRF token.
pub(crate) const CSRF_HEADER: &str = "X-Lkr-CSRF";

/// The cookie of a request's session, as it is named and set.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionCookie {
    by_tls: bool,
}

/// What became of the session in a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CookieSession {
    /// There is no such cookie.
    None,
    /// Nobody knows: the store cannot be asked, or the browser sends the cookie only once the page is there, because a link of another
    /// site led to the page.
    Unknown,
    /// It is valid.
    Valid,
    /// It has expired or was ended.
    Ended,
}

impl SessionCookie {
    /// The cookie of a request. It came by TLS if a trusted proxy says so in X-Forwarded-Proto.
    pub(super) fn of(request: &HttpRequest, trusted: &[IpNet]) -> Self {
        let peer = request.peer_addr().map(|peer| peer.ip().to_canonical());
        let is_trusted = peer.is_some_and(|peer| trusted.iter().any(|network| network.contains(&peer)));
        let forwarded = request.headers().get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        // Of a list, the first is that of the client's own connection.
        let scheme = forwarded.and_then(|schemes| schemes.split(',').next()).unwrap_or_default();
        Self { by_tls: is_trusted && scheme.trim().eq_ignore_ascii_case("https") }
    }

    const fn name(self) -> &'static str {
        if self.by_tls { HOST_COOKIE } else { PLAIN_COOKIE }
    }

    /// The header that sets the cookie to a session's token.
    ///
    /// # Errors
    /// Internal, if the token has characters that a header does not allow.
    pub(crate) fn set(self, token: &str, lifetime: Duration) -> Result<HeaderValue, ApiError> {
        let (name, seconds) = (self.name(), lifetime.as_secs());
        let secure = if self.by_tls { "; Secure" } else { "" };
        let cookie = format!("{name}={token}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::try_from(cookie).map_err(|error| ApiError::internal(&error))
    }

    /// The header that removes the cookie.
    ///
    /// # Errors
    /// None in practice: the header is made of constants.
    pub(crate) fn remove(self) -> Result<HeaderValue, ApiError> {
        self.set("", Duration::ZERO)
    }

    /// The session token that the request has in the cookie; `None` without the cookie. Other cookies are ignored, however
    /// malformed they are.
    ///
    /// # Errors
    /// Unauthenticated, if the cookie is sent twice or is no text: nobody knows which session is meant.
    pub(super) fn token(self, request: &HttpRequest) -> Result<Option<String>, ApiError> {
        let cookies = request.headers().get_all(header::COOKIE);
        let pairs = cookies.flat_map(|line| line.as_bytes().split(|&byte| byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            let mut parts = pair.splitn(2, |&byte| byte == b'=');
            let (name, value) = (parts.next()?, parts.next()?);
            (name.trim_ascii() == self.name().as_bytes()).then(|| value.trim_ascii())
        });
        let Some(value) = values.next() else { return Ok(None) };
        match std::str::from_utf8(value) {
            Ok(token) if values.next().is_none() => Ok(Some(token.to_owned())),
            _ => {
                let message = format!("the cookie {} is malformed or sent twice", self.name());
                let error = ApiError::new(ErrorCode::Unauthenticated, message);
                Err(error.about(ErrorSubject::CredentialForm))
            }
        }
    }
}

/// Refuses a request that another site may have made the browser send: anything but a read needs the CSRF token of its
/// session, which other sites cannot read.
///
/// # Errors
/// Forbidden, if the token is missing or wrong.
pub(super) fn check_csrf(request: &HttpRequest, session_token: &str) -> Result<(), ApiError> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(());
    }
    let mut sent = request.headers().get_all(CSRF_HEADER);
    let problem = match (sent.next(), sent.next()) {
        (None, _) => "is missing",
        (Some(token), None) if token.to_str().is_ok_and(|token| is_csrf_token(token, session_token)) => {
            return Ok(());
        }
        _ => "is wrong",
    };
    Err(ApiError::forbidden(format!(
        "the header {CSRF_HEADER} {problem}: with the session in a cookie it must have the csrf_token of GET /api/v1/auth/me"
    )))
}

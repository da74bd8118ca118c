//! The console: its page at every address that it knows, and its files.

use actix_web::{
    HttpRequest, HttpResponse,
    http::{
        Method, StatusCode,
        header::{self, HeaderValue},
    },
};
use lkr_console::{FILES_PATH, Options, POLICY, Theme};
use serde::Serialize;

use super::{assets::accepts_gzip, pages::page_response};
use crate::{
    error::{ApiError, ErrorCode},
    http::{ApiResponse, CookieSession, Endpoint, HandlerResult, Public, RequestContext},
    openapi::{OperationDoc, ResponseShape},
    state::AppState,
};

/// The cookie in which the console keeps the theme.
const THEME_COOKIE: &str = "lkr_theme";

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            Method::GET,
            "/",
            OperationDoc::new("Operations", "home", "Returns the console", ResponseShape::Raw("text/html")),
            home,
        ),
        Endpoint::new(
            Method::GET,
            "/console/{asset}",
            OperationDoc::new(
                "Operations",
                "console_file",
                "Returns a file of the console",
                ResponseShape::File,
            )
            .errors(&[ErrorCode::NotFound]),
            file,
        ),
    ]
}

async fn home(_: Public, cx: RequestContext) -> HandlerResult {
    page(&cx, StatusCode::OK).await.map(ApiResponse::Raw)
}

/// The page for a path without a route: that of the console if the path is one of its addresses, and with status 404 for
/// other paths that a browser asks for. Programs get the usual refusal, so `None`.
pub(crate) async fn page_of_path(request: &HttpRequest) -> Option<Result<HttpResponse, ApiError>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let status = if lkr_console::is_page(request.path()) {
        StatusCode::OK
    } else if wants_page(request) {
        StatusCode::NOT_FOUND
    } else {
        return None;
    };
    Some(match RequestContext::of_page(request.clone()) {
        Ok(cx) => page(&cx, status).await,
        Err(error) => Err(error),
    })
}

/// Whether the request comes from a person's browser. Paths of the API and of files have no pages.
fn wants_page(request: &HttpRequest) -> bool {
    let is_foreign = ["/api/", "/mcp/", "/docs/", FILES_PATH];
    if is_foreign.iter().any(|prefix| request.path().starts_with(prefix)) {
        return false;
    }
    let accept = request.headers().get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|types| types.split(',').any(|kind| kind.trim().starts_with("text/html")))
}

/// The options of the server that the page hands to the console: `Options` in `web/src/options.ts`.
#[derive(Serialize)]
struct ServerOptions<'a> {
    version: &'a str,
    session: bool,
    register: bool,
    login_for_reads: bool,
    upload_max_bytes: u64,
    upload_extensions: Vec<&'a str>,
}

async fn page(cx: &RequestContext, status: StatusCode) -> Result<HttpResponse, ApiError> {
    let session = cx.cookie_session().await;
    let may_have_session = matches!(session, CookieSession::Valid | CookieSession::Unknown);
    let json = options(cx.state(), may_have_session)?;
    let theme = cx.cookie(THEME_COOKIE).map(Theme::named).unwrap_or_default();
    let html =
        lkr_console::page(&Options { json: &json, theme }).map_err(|error| ApiError::internal(&error))?;
    let mut response = page_response(status, POLICY);
    // With a session that has ended, every request of the page would be refused.
    if session == CookieSession::Ended {
        response.insert_header((header::SET_COOKIE, cx.session_cookie().remove()?));
    }
    Ok(response.body(html))
}

fn options(state: &AppState, session: bool) -> Result<String, ApiError> {
    let options = &state.options;
    let extensions = options.upload_extensions.iter();
    let options = ServerOptions {
        version: env!("CARGO_PKG_VERSION"),
        session,
        register: options.register_enabled,
        login_for_reads: options.require_login_for_reads,
        upload_max_bytes: options.upload_max_bytes,
        upload_extensions: extensions.map(|extension| extension.trim_start_matches('.')).collect(),
    };
    serde_json::to_string(&options).map_err(|error| ApiError::internal(&error))
}

async fn file(_: Public, cx: RequestContext) -> HandlerResult {
    let file = lkr_console::file(cx.path_part("asset"))
        .ok_or_else(|| ApiError::not_found("the console has no such file"))?;
    let lifetime =
        if file.is_immutable() { "public, max-age=31536000, immutable" } else { "public, max-age=3600" };
    let mut response = HttpResponse::Ok();
    response
        .content_type(file.content_type())
        .insert_header((header::CACHE_CONTROL, HeaderValue::from_static(lifetime)))
        .insert_header((header::VARY, "Accept-Encoding"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    if accepts_gzip(&cx) {
        let response = response.insert_header((header::CONTENT_ENCODING, "gzip")).body(file.gzipped());
        return Ok(ApiResponse::Raw(response));
    }
    let bytes = file.bytes().map_err(|error| ApiError::internal(&error))?;
    Ok(ApiResponse::Raw(response.body(bytes)))
}

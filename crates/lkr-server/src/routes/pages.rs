//! What pages of the server have in common: their headers and the style of plain ones.

use actix_web::{
    HttpResponse, HttpResponseBuilder,
    http::{
        StatusCode,
        header::{self, HeaderName},
    },
};

use crate::http::ApiResponse;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
color:#1b1f24;background:#fff}code{font:14px ui-monospace,monospace}h2{margin-top:2.5rem}\
details{border:1px solid #d0d7de;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}summary{cursor:pointer}\
b.m{display:inline-block;min-width:4.5rem}pre{overflow:auto;background:#f6f8fa;padding:.8rem}\
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}details{border-color:#30363d}\
pre{background:#161b22}a{color:#58a6ff}}";

/// A page. What it loads carries its nonce.
#[derive(Debug)]
pub(super) struct Page<'a> {
    pub(super) title: &'a str,
    pub(super) nonce: Nonce,
    /// What the head has besides the title.
    pub(super) head: &'a str,
    pub(super) body: &'a str,
    /// Directives of the content security policy besides those of every page.
    pub(super) policy: &'a str,
}

/// A text that no page had before, by which its policy knows its own elements.
#[derive(Debug)]
pub(super) struct Nonce(pub(super) String);

impl Default for Nonce {
    fn default() -> Self {
        Self(uuid::Uuid::new_v4().simple().to_string())
    }
}

/// The style of plain pages, as an element of the head.
pub(super) fn style(Nonce(nonce): &Nonce) -> String {
    format!("<style nonce=\"{nonce}\">{STYLE}</style>")
}

/// The response with a page. The title contains no markup.
pub(super) fn page(page: &Page<'_>) -> ApiResponse {
    let Page { title, nonce: Nonce(nonce), head, body, policy } = page;
    let html = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width\"><title>{title}</title>{head}</head>\
         <body>{body}</body></html>"
    );
    let policy = format!("style-src 'nonce-{nonce}'{policy}");
    ApiResponse::Raw(page_response(StatusCode::OK, &policy).body(html))
}

/// A response with the headers that every page has. `policy` has the directives of the content security policy that allow
/// something.
pub(crate) fn page_response(status: StatusCode, policy: &str) -> HttpResponseBuilder {
    let policy =
        format!("default-src 'none'; {policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    let mut response = HttpResponse::build(status);
    response
        .content_type("text/html; charset=utf-8")
        .insert_header((header::CONTENT_SECURITY_POLICY, policy))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::REFERRER_POLICY, "no-referrer"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .insert_header((HeaderName::from_static("cross-origin-opener-policy"), "same-origin"));
    response
}

//! The page of the OpenAPI document: Swagger UI, and plain HTML for browsers without scripts. Its content security policy
//! allows the elements with its nonce and requests to this server.

mod plain;

use std::sync::OnceLock;

use actix_web::{
    HttpResponse,
    http::{Method, StatusCode, header},
};
use lkr_swagger_ui::{Asset, SCRIPT, STYLE, asset};
use serde_json::Value;

use super::{
    assets::accepts_gzip,
    ops::OpenApiJson,
    pages::{Nonce, Page, page, style},
};
use crate::{
    error::{ApiError, ErrorCode},
    http::{ApiResponse, Endpoint, HandlerResult, Public, RequestContext},
    openapi::{OperationDoc, ResponseShape},
    wire::range::is_not_modified,
};

/// The files of the page.
const FILES: [&str; 2] = [SCRIPT, STYLE];

/// Shows the document. Nothing of the page's own URL decides what is loaded, and no other host is asked to validate it.
const START: &str = "SwaggerUIBundle({url:'/api/v1/openapi.json',dom_id:'#viewer',deepLinking:true,docExpansion:'list',\
tryItOutEnabled:true,displayRequestDuration:true,defaultModelsExpandDepth:0,queryConfigEnabled:false,validatorUrl:null});";

/// The images are those that the style sheet contains.
const POLICY: &str = "img-src data:; connect-src 'self'";

/// `openapi_json` returns the OpenAPI document.
pub(super) fn endpoints(openapi_json: OpenApiJson) -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Operations", id, summary, shape);
    vec![
        Endpoint::new(
            Method::GET,
            "/docs",
            doc("docs", "Returns this document as a page", ResponseShape::Raw("text/html")),
            move |permission, cx| docs(permission, cx, openapi_json),
        ),
        Endpoint::new(
            Method::GET,
            "/docs/{file}",
            doc("docs_file", "Returns a file of the page /docs", ResponseShape::File)
                .path_choice("file", "The name of the file.", &FILES)
                .request_header("If-None-Match", "Return 304 if the file's ETag is one of these.")
                .header("ETag", "The version of the file.")
                .also_status(StatusCode::NOT_MODIFIED, "The client has this version of the file.")
                .errors(&[ErrorCode::NotFound]),
            file,
        ),
    ]
}

async fn docs(_: Public, _: RequestContext, openapi_json: OpenApiJson) -> HandlerResult {
    let plain = plain_operations(openapi_json)?;
    let nonce = Nonce::default();
    let id = &nonce.0;
    let head = format!(
        "<noscript>{}</noscript><link rel=\"stylesheet\" href=\"/docs/{STYLE}\" nonce=\"{id}\">",
        style(&nonce)
    );
    let body = format!(
        "<noscript>{plain}</noscript><div id=\"viewer\"></div><script nonce=\"{id}\" src=\"/docs/{SCRIPT}\"></script>\
         <script nonce=\"{id}\">{START}</script>"
    );
    let policy = format!("; script-src 'nonce-{id}'; {POLICY}");
    Ok(page(&Page {
        title: "lkr: API documentation",
        head: &head,
        body: &body,
        policy: &policy,
        nonce: Nonce(id.clone()),
    }))
}

/// The operations as HTML without scripts, which is made once.
fn plain_operations(openapi_json: OpenApiJson) -> Result<&'static str, ApiError> {
    static HTML: OnceLock<String> = OnceLock::new();
    if let Some(html) = HTML.get() {
        return Ok(html);
    }
    let document: Value =
        serde_json::from_str(openapi_json()?).map_err(|error| ApiError::internal(&error))?;
    Ok(HTML.get_or_init(|| plain::operations(&document)))
}

async fn file(_: Public, cx: RequestContext) -> HandlerResult {
    let asset =
        asset(cx.path_part("file")).ok_or_else(|| ApiError::not_found("the page has no such file"))?;
    let is_gzipped = accepts_gzip(&cx);
    let etag = etag(asset, is_gzipped);
    let is_current = is_not_modified(cx.request().headers(), &etag);
    let mut response =
        HttpResponse::build(if is_current { StatusCode::NOT_MODIFIED } else { StatusCode::OK });
    response
        .insert_header((header::ETAG, etag))
        .insert_header((header::CACHE_CONTROL, "public, no-cache"))
        .insert_header((header::VARY, "Accept-Encoding"))
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"));
    if is_current {
        return Ok(ApiResponse::Raw(response.finish()));
    }
    response.content_type(asset.content_type());
    if is_gzipped {
        let response = response.insert_header((header::CONTENT_ENCODING, "gzip")).body(asset.gzipped());
        return Ok(ApiResponse::Raw(response));
    }
    let bytes = asset.bytes().map_err(|error| ApiError::internal(&error))?;
    Ok(ApiResponse::Raw(response.body(bytes)))
}

/// The version of a file in one encoding.
fn etag(asset: &Asset, is_gzipped: bool) -> String {
    let encoding = if is_gzipped { "-gzip" } else { "" };
    format!("\"{}{encoding}\"", asset.version())
}

//! Files of pages, which the executable has compressed.

use actix_web::http::header;

use crate::http::RequestContext;

/// Whether the client accepts gzip: it names it, and not with the weight 0.
pub(super) fn accepts_gzip(cx: &RequestContext) -> bool {
    let mut encodings = cx.header(header::ACCEPT_ENCODING).flat_map(|line| line.split(','));
    encodings.any(|encoding| {
        let (name, weight) = encoding.split_once(';').unwrap_or((encoding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

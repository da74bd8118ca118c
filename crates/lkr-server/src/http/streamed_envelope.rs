//! JSON around a text that is streamed, never held in memory as a whole.

use std::io;

use actix_web::{HttpResponse, http::header, web::Bytes};
use futures_util::{Stream, StreamExt, stream};

use super::{request_id::RequestId, response::ApiResponse};

/// A response whose payload is the JSON object `head` with one more string, `name`, that is streamed from `text`.
pub(crate) fn stream_envelope(
    id: &RequestId,
    head: &str,
    name: &str,
    text: impl Stream<Item = io::Result<Bytes>> + 'static,
) -> ApiResponse {
    let head = head.strip_suffix('}').unwrap_or(head);
    let begin = format!("{{\"code\":0,\"message\":\"ok\",\"data\":{head},\"{name}\":\"");
    let end = format!("\"}},\"request_id\":\"{}\"}}", id.as_str());
    stream_json(begin, text, end)
}

/// A response of JSON with a string that is streamed from `text`, between what precedes and what follows its content.
pub(crate) fn stream_json(
    begin: String,
    text: impl Stream<Item = io::Result<Bytes>> + 'static,
    end: String,
) -> ApiResponse {
    let once = |part: String| stream::once(async { Ok(Bytes::from(part)) });
    let text = text.map(|part| part.map(|part| Bytes::from(json_escaped(&part))));
    let response = HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(once(begin).chain(text).chain(once(end)));
    ApiResponse::Raw(response)
}

/// Escapes a part of a text for a JSON string. Only single bytes need escapes, so a part may start and end inside a
/// character.
fn json_escaped(part: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(part.len() + part.len() / 16);
    for &byte in part {
        match byte {
            b'"' | b'\\' => escaped.extend([b'\\', byte]),
            b'\n' => escaped.extend(b"\\n"),
            b'\r' => escaped.extend(b"\\r"),
            b'\t' => escaped.extend(b"\\t"),
            0..0x20 => escaped.extend(format!("\\u{byte:04x}").bytes()),
            _ => escaped.push(byte),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn text_split_anywhere_and_escaped_parses_as_the_same_text(text in any::<String>(), size in 1usize..9) {
            let parts: Vec<u8> = text.as_bytes().chunks(size).flat_map(json_escaped).collect();
            let json = [b"\"".as_slice(), &parts, b"\""].concat();
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}

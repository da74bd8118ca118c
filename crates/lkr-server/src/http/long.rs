//! Envelopes around a text that is never whole in memory.

use std::io;

use actix_web::{HttpResponse, http::header, web::Bytes};
use futures_util::{Stream, StreamExt, stream};

use super::{Reply, RequestId};

/// An answer whose payload is the object `head` with one more text, `name`, which is sent as it comes.
pub(crate) fn enveloped(
    id: &RequestId,
    head: &str,
    name: &str,
    text: impl Stream<Item = io::Result<Bytes>> + 'static,
) -> Reply {
    let head = head.strip_suffix('}').unwrap_or(head);
    let begin = format!("{{\"code\":0,\"message\":\"ok\",\"data\":{head},\"{name}\":\"");
    let end = format!("\"}},\"request_id\":\"{}\"}}", id.as_str());
    let once = |part: String| stream::once(async { Ok(Bytes::from(part)) });
    let text = text.map(|part| part.map(|part| Bytes::from(escaped(&part))));
    let response = HttpResponse::Ok()
        .content_type("application/json")
        .insert_header((header::X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .insert_header((header::CACHE_CONTROL, "no-store"))
        .streaming(once(begin).chain(text).chain(once(end)));
    Reply::Bare(response)
}

/// A part of a text as it stands in a JSON string. Only single bytes need escapes, so that a part may begin and end
/// amid a character.
fn escaped(part: &[u8]) -> Vec<u8> {
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
        fn any_text_in_any_parts_is_read_back(text in any::<String>(), size in 1usize..9) {
            let parts: Vec<u8> = text.as_bytes().chunks(size).flat_map(escaped).collect();
            let json = [b"\"".as_slice(), &parts, b"\""].concat();
            prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text);
        }
    }
}

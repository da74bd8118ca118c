//! The framing of the responses on a connection (RFC 9112, section 6), as far as a server needs it that knows its own
//! responses.

/// The most headers of a response. More end the examination of a connection.
const MAX_HEADERS: usize = 64;

/// The position in a connection's responses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Framing {
    /// The next byte is the first of a response.
    #[default]
    Head,
    /// Bytes of a body.
    Body { left: u64, then: After },
    /// The line with the size of a chunk.
    ChunkSize { size: u64, in_extension: bool },
    /// Nothing more is examined: the rest of the connection is one body, or unknown.
    Unknown,
}

/// What follows bytes of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    Response,
    Chunk,
}

/// The result of an examination.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// All bytes belong to responses of the application.
    All,
    /// After `before` bytes, a response of the framework begins, with `length` bytes.
    Replace { before: usize, status: u16, length: usize },
}

/// The head of a response.
struct Head {
    length: usize,
    status: u16,
    has_request_id: bool,
    content_length: Option<u64>,
    is_chunked: bool,
}

impl Framing {
    /// Examines the next bytes of a connection. A head must be in them as a whole. `is_head` is called for each response
    /// of the application and returns whether it answers a HEAD request.
    pub(super) fn advance(&mut self, bytes: &[u8], mut is_head: impl FnMut() -> bool) -> Next {
        let mut rest = bytes;
        while !rest.is_empty() {
            match *self {
                Self::Unknown => break,
                Self::Head => {
                    let Some(head) = Head::parse(rest) else {
                        *self = Self::Unknown;
                        break;
                    };
                    if head.is_of_the_framework() {
                        let before = bytes.len() - rest.len();
                        return Next::Replace { before, status: head.status, length: head.length };
                    }
                    *self = head.followed_by(&mut is_head);
                    rest = rest.get(head.length..).unwrap_or_default();
                }
                Self::Body { left, then } => {
                    let here = left.min(rest.len() as u64);
                    *self = match left - here {
                        0 => then.framing(),
                        left => Self::Body { left, then },
                    };
                    rest = rest.get(here as usize..).unwrap_or_default();
                }
                Self::ChunkSize { size, in_extension } => {
                    let Some((&byte, after)) = rest.split_first() else { break };
                    *self = chunk_size(size, in_extension, byte);
                    rest = after;
                }
            }
        }
        Next::All
    }
}

/// The state after a byte of the line with a chunk's size.
fn chunk_size(size: u64, in_extension: bool, byte: u8) -> Framing {
    match (byte, char::from(byte).to_digit(16)) {
        // The last chunk has no bytes but an empty line.
        (b'\n', _) if size == 0 => Framing::Body { left: 2, then: After::Response },
        (b'\n', _) => Framing::Body { left: size.saturating_add(2), then: After::Chunk },
        (_, Some(digit)) if !in_extension => {
            Framing::ChunkSize { size: size.saturating_mul(16).saturating_add(digit.into()), in_extension }
        }
        _ => Framing::ChunkSize { size, in_extension: true },
    }
}

impl After {
    const fn framing(self) -> Framing {
        match self {
            Self::Response => Framing::Head,
            Self::Chunk => Framing::ChunkSize { size: 0, in_extension: false },
        }
    }
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(bytes).ok()? else { return None };
        let value = |name: &str| {
            let header = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(header.value).ok()
        };
        Some(Self {
            length,
            status: response.code?,
            has_request_id: value("x-request-id").is_some(),
            content_length: value("content-length").and_then(|length| length.parse().ok()),
            is_chunked: value("transfer-encoding")
                .is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")),
        })
    }

    /// Whether the framework made the response: every response of the application has a request id.
    fn is_of_the_framework(&self) -> bool {
        matches!(self.status, 400 | 408 | 431) && !self.has_request_id && self.content_length == Some(0)
    }

    fn followed_by(&self, is_head: &mut impl FnMut() -> bool) -> Framing {
        if self.status == 100 {
            return Framing::Head;
        }
        if is_head() || matches!(self.status, 204 | 304) {
            return Framing::Head;
        }
        match (self.is_chunked, self.content_length) {
            (true, _) => After::Chunk.framing(),
            (false, Some(0)) => Framing::Head,
            (false, Some(left)) => Framing::Body { left, then: After::Response },
            (false, None) => Framing::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const REFUSAL: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\ndate: now\r\n\r\n";

    /// A response of the application.
    #[derive(Debug, Clone)]
    struct Response {
        bytes: Vec<u8>,
        is_head: bool,
    }

    fn sized(body: &[u8], is_head: bool) -> Response {
        let head =
            format!("HTTP/1.1 400 Bad Request\r\nx-request-id: a\r\ncontent-length: {}\r\n\r\n", body.len());
        Response { bytes: [head.as_bytes(), if is_head { b"" } else { body }].concat(), is_head }
    }

    fn chunked(parts: &[Vec<u8>]) -> Response {
        let mut bytes = b"HTTP/1.1 200 OK\r\nx-request-id: a\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            bytes.extend(format!("{:X}\r\n", part.len()).bytes());
            bytes.extend(part);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        Response { bytes, is_head: false }
    }

    fn response() -> impl Strategy<Value = Response> {
        // Bodies that look like a refusal must not be taken for one.
        let body = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            Just(REFUSAL.as_bytes().to_vec()),
            Just(b"0\r\n\r\nHTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ];
        let empty = "HTTP/1.1 304 Not Modified\r\nx-request-id: a\r\n\r\n";
        prop_oneof![
            (body.clone(), any::<bool>()).prop_map(|(body, is_head)| sized(&body, is_head)),
            prop::collection::vec(body, 0..4).prop_map(|parts| chunked(&parts)),
            Just(Response { bytes: empty.as_bytes().to_vec(), is_head: false }),
        ]
    }

    proptest! {
        #[test]
        fn refusal_is_found_after_any_responses_and_nowhere_else(
            responses in prop::collection::vec(response(), 0..6),
        ) {
            let mut heads: std::collections::VecDeque<bool> =
                responses.iter().map(|response| response.is_head).collect();
            let mut framing = Framing::default();
            // Each write begins where a head begins, or goes on with a body, as the framework's writes do.
            let all = responses.iter().flat_map(|response| response.bytes.clone()).collect::<Vec<_>>();
            prop_assert_eq!(framing.advance(&all, || heads.pop_front().unwrap()), Next::All);
            prop_assert_eq!(framing, Framing::Head);
            let found = framing.advance(REFUSAL.as_bytes(), || unreachable!());
            prop_assert_eq!(found, Next::Replace { before: 0, status: 400, length: REFUSAL.len() });
            let together = [&all, REFUSAL.as_bytes()].concat();
            let mut heads: std::collections::VecDeque<bool> =
                responses.iter().map(|response| response.is_head).collect();
            let found = Framing::default().advance(&together, || heads.pop_front().unwrap());
            prop_assert_eq!(found, Next::Replace { before: all.len(), status: 400, length: REFUSAL.len() });
        }

        #[test]
        fn bodies_may_be_written_in_parts(body in prop::collection::vec(any::<u8>(), 1..200), at in 0..200_usize) {
            for response in [sized(&body, false), chunked(&[body.clone(), body.clone()])] {
                let head = response.bytes.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
                let at = head + at.min(response.bytes.len() - head);
                let mut framing = Framing::default();
                prop_assert_eq!(framing.advance(&response.bytes[..at], || false), Next::All);
                prop_assert_eq!(framing.advance(&response.bytes[at..], || false), Next::All);
                prop_assert_eq!(framing, Framing::Head);
            }
        }
    }

    #[test]
    fn unknown_framing_ends_the_examination() {
        for head in ["HTTP/1.1 200 OK\r\n\r\n", "garbage\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n"]
        {
            let mut framing = Framing::default();
            assert_eq!(framing.advance(head.as_bytes(), || false), Next::All);
            assert_eq!(framing, Framing::Unknown, "{head}");
            assert_eq!(framing.advance(REFUSAL.as_bytes(), || false), Next::All);
        }
    }
}

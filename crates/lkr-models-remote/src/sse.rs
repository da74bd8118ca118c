//! Decodes the data fields of server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>.

use lkr_models::Result;

use crate::error;

/// The longest event, in bytes.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// An incremental decoder: the bytes may be split anywhere.
#[derive(Debug, Default)]
pub(crate) struct SseDecoder {
    /// The incomplete line.
    line: Vec<u8>,
    /// The data lines of the incomplete event.
    data: Option<String>,
    /// Whether the last byte was a carriage return. A line feed after it belongs to the same line end.
    after_carriage_return: bool,
    /// Whether the first line, which may begin with a byte order mark, is complete.
    first_line_ended: bool,
}

impl SseDecoder {
    /// The data of each event that `bytes` complete. Only an empty line completes an event.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if self.after_carriage_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            self.after_carriage_return = byte == b'\r';
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > MAX_EVENT_BYTES {
                return Err(error::invalid_response("an event of the stream is too long"));
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.first_line_ended { &*line } else { line.trim_start_matches('\u{feff}') };
        self.first_line_ended = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(text: &str) -> Vec<String> {
        SseDecoder::default().push(text.as_bytes()).unwrap()
    }

    #[test]
    fn events_are_decoded_as_the_standard_says() {
        for (text, events) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata:b\r\rdata:  c\n\n", vec!["a", "b", " c"]),
            (": a comment\n\nevent: x\nid: 1\nretry: 2\ndata: a\ndata: b\ndata\n\n", vec!["a\nb\n"]),
            ("\u{feff}data: \u{feff}a\n\n\n\n", vec!["\u{feff}a"]),
            ("data:\n\n", vec![""]),
            ("database: x\n data: y\n\n", vec![]),
            ("data: not ended\n", vec![]),
        ] {
            assert_eq!(decode(text), events, "{text:?}");
        }
    }

    #[test]
    fn events_beyond_the_maximum_size_are_refused() {
        let mut decoder = SseDecoder::default();
        let line_refused = (0..100).any(|_| decoder.push(&[b'x'; 64 * 1024]).is_err());
        let lines = "data: some more\n".repeat(200_000);
        assert!(line_refused && SseDecoder::default().push(lines.as_bytes()).is_err());
    }

    /// A data line, a comment, another field, an empty line.
    fn line() -> impl Strategy<Value = String> {
        prop_oneof![
            "data:? ?[^\\r\\n]{0,12}",
            "data: [{}a-zäé漢🦉\"]{0,8}",
            ":[^\\r\\n]{0,8}",
            "[a-z]{1,6}: x",
            Just(String::new()),
            Just(String::new()),
        ]
    }

    proptest! {
        /// The bytes may be split within a character or a line end, and lines may have any of the three line ends.
        #[test]
        fn splitting_the_bytes_does_not_change_the_events(
            lines in prop::collection::vec((line(), prop_oneof!["\n", "\r\n", "\r"]), 0..30),
            cuts in prop::collection::vec(0_usize..9, 0..200),
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            let mut rest = text.as_bytes();
            let (mut decoder, mut found) = (SseDecoder::default(), Vec::new());
            for cut in cuts {
                let (part, remaining) = rest.split_at(cut.min(rest.len()));
                found.extend(decoder.push(part).unwrap());
                rest = remaining;
            }
            found.extend(decoder.push(rest).unwrap());
            prop_assert_eq!(&found, &decode(&text));
            // All line ends are equivalent, except that a carriage return followed by a line feed is one line end.
            let plain: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
            let merged = lines.windows(2).any(|two| two[0].1 == "\r" && two[1].0.is_empty() && two[1].1 == "\n");
            prop_assert!(merged || found == decode(&plain));
        }
    }
}

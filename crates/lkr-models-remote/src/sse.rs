//! Server-sent events: <https://html.spec.whatwg.org/multipage/server-sent-events.html>, as much of it as carries data.

use lkr_models::Result;

use crate::error;

/// The longest event that is taken, in bytes.
const EVENT_BYTES: usize = 1024 * 1024;

/// Reads events from bytes as they come, cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// The line that has begun.
    line: Vec<u8>,
    /// The lines of data of the event that has begun.
    data: Option<String>,
    /// Whether the last byte was a carriage return: a line feed behind it ends no other line.
    returned: bool,
    /// Whether the first line has ended.
    begun: bool,
}

impl Events {
    /// The data of each event that `bytes` end. One that no empty line has ended yet is none.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>> {
        let mut events = Vec::new();
        for &byte in bytes {
            match byte {
                b'\n' if self.returned => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            self.returned = byte == b'\r';
            if self.line.len() + self.data.as_ref().map_or(0, String::len) > EVENT_BYTES {
                return Err(error::wrong_answer("an event of its stream is too long"));
            }
        }
        Ok(events)
    }

    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        let line = if self.begun { &*line } else { line.trim_start_matches('\u{feff}') };
        self.begun = true;
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

    fn whole(text: &str) -> Vec<String> {
        Events::default().push(text.as_bytes()).unwrap()
    }

    #[test]
    fn events_are_read() {
        for (text, events) in [
            ("data: a\n\ndata: b\n\n", vec!["a", "b"]),
            ("data: a\r\n\r\ndata:b\r\rdata:  c\n\n", vec!["a", "b", " c"]),
            (": a comment\n\nevent: x\nid: 1\nretry: 2\ndata: a\ndata: b\ndata\n\n", vec!["a\nb\n"]),
            ("\u{feff}data: \u{feff}a\n\n\n\n", vec!["\u{feff}a"]),
            ("data:\n\n", vec![""]),
            ("database: x\n data: y\n\n", vec![]),
            ("data: not ended\n", vec![]),
        ] {
            assert_eq!(whole(text), events, "{text:?}");
        }
    }

    #[test]
    fn what_never_ends_is_not_kept() {
        let mut events = Events::default();
        let refused = (0..100).any(|_| events.push(&[b'x'; 64 * 1024]).is_err());
        let lines = "data: some more\n".repeat(200_000);
        assert!(refused && Events::default().push(lines.as_bytes()).is_err());
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
        /// Wherever the bytes are cut, in the middle of a letter or of a line's end too, and whatever ends the lines.
        #[test]
        fn cuts_change_nothing(
            lines in prop::collection::vec((line(), prop_oneof!["\n", "\r\n", "\r"]), 0..30),
            cuts in prop::collection::vec(0_usize..9, 0..200),
        ) {
            let text: String = lines.iter().map(|(line, end)| format!("{line}{end}")).collect();
            let mut rest = text.as_bytes();
            let (mut events, mut found) = (Events::default(), Vec::new());
            for cut in cuts {
                let (part, behind) = rest.split_at(cut.min(rest.len()));
                found.extend(events.push(part).unwrap());
                rest = behind;
            }
            found.extend(events.push(rest).unwrap());
            prop_assert_eq!(&found, &whole(&text));
            // What ends the lines says nothing, but that a carriage return and a line feed behind it are one end.
            let plain: String = lines.iter().map(|(line, _)| format!("{line}\n")).collect();
            let merged = lines.windows(2).any(|two| two[0].1 == "\r" && two[1].0.is_empty() && two[1].1 == "\n");
            prop_assert!(merged || found == whole(&plain));
        }
    }
}

//! Recovers the valid beginning of a truncated JSON object.

use serde_json::Value;

/// The number of cut points that are tried, from the end.
const MAX_ATTEMPTS: usize = 64;

/// The longest beginning of the object in `text` that becomes valid by closing its open strings, arrays and objects. A
/// truncated string keeps its complete sentences; a string without a complete sentence is dropped.
pub(crate) fn close_truncated(text: &str) -> Option<Value> {
    let text = text.get(text.find('{')?..)?;
    let parse = |cut: &CutPoint| {
        let beginning = text.get(..cut.at)?;
        serde_json::from_str(&format!("{beginning}{}", cut.closing)).ok()
    };
    cut_points(text).iter().rev().take(MAX_ATTEMPTS).find_map(parse)
}

/// A byte offset where the text may be cut, and what then closes it.
struct CutPoint {
    at: usize,
    closing: String,
}

fn cut_points(text: &str) -> Vec<CutPoint> {
    let mut scanner = Scanner::default();
    for (at, c) in text.char_indices() {
        if scanner.in_string { scanner.scan_string(at, c) } else { scanner.scan_structure(at, c) }
    }
    scanner.cut_points
}

#[derive(Default)]
struct Scanner {
    cut_points: Vec<CutPoint>,
    /// The closing brackets of the open arrays and objects, outermost first.
    open_brackets: Vec<char>,
    in_string: bool,
    escaped: bool,
    /// Whether the last character ended a sentence of the string.
    sentence_ended: bool,
}

impl Scanner {
    fn scan_string(&mut self, at: usize, c: char) {
        let after = at + c.len_utf8();
        if self.sentence_ended && c.is_whitespace() {
            self.push(at, "\"");
        }
        self.sentence_ended = !self.escaped && ".!?。！？".contains(c);
        if self.sentence_ended && !c.is_ascii() {
            self.push(after, "\"");
        }
        self.in_string = self.escaped || c != '"';
        self.escaped = !self.escaped && c == '\\';
        if !self.in_string {
            self.push(after, "");
        }
    }

    fn scan_structure(&mut self, at: usize, c: char) {
        match c {
            '"' => (self.in_string, self.sentence_ended) = (true, false),
            '{' => self.open_brackets.push('}'),
            '[' => self.open_brackets.push(']'),
            '}' | ']' => drop(self.open_brackets.pop()),
            _ => {}
        }
        match c {
            ',' => self.push(at, ""),
            '{' | '[' | '}' | ']' => self.push(at + c.len_utf8(), ""),
            _ => {}
        }
    }

    fn push(&mut self, at: usize, quote: &str) {
        let closing = quote.chars().chain(self.open_brackets.iter().rev().copied()).collect();
        self.cut_points.push(CutPoint { at, closing });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn truncated_object_keeps_complete_values_and_sentences() {
        let check = |text: &str, expected: Value| assert_eq!(close_truncated(text), Some(expected), "{text}");
        check("{\"a\": \"It is so. It is n", json!({ "a": "It is so." }));
        check("{\"a\": \"氷は白い。水は", json!({ "a": "氷は白い。" }));
        check("{\"a\": \"It is n", json!({}));
        check("{\"a\": \"so\", \"b\": [\"x\", \"y", json!({ "a": "so", "b": ["x"] }));
        check(
            "{\"a\": \"so\", \"b\": [{\"n\": 1, \"t\": \"Two. Thr",
            json!({ "a": "so", "b": [{ "n": 1, "t": "Two." }] }),
        );
        check("{\"a\": \"so\", \"b\": [{\"n\": 1", json!({ "a": "so", "b": [{}] }));
        check("{\"a\": \"so\", \"b", json!({ "a": "so" }));
        check("Sure: {\"a\": {\"b\": true, \"c\": fal", json!({ "a": { "b": true } }));
        check("{\"a\": \"a \\\"b. c\\\" and", json!({ "a": "a \"b." }));
        check("{\"a\": [1, 2], ", json!({ "a": [1, 2] }));
        assert_eq!((close_truncated("no"), close_truncated("")), (None, None));
    }

    proptest! {
        /// Values that are complete before the cut are kept, and nothing is invented.
        #[test]
        fn any_truncation_keeps_complete_values_only(
            items in prop::collection::vec("[a-c. \"\\\\é。]{0,9}", 0..6),
            at in 0_usize..200,
        ) {
            let text = json!({ "first": "All is said.", "items": items }).to_string();
            let cut: String = text.chars().take(at).collect();
            let kept = close_truncated(&cut);
            prop_assert_eq!(kept.is_none(), cut.is_empty());
            let kept = kept.unwrap_or_default();
            if cut.contains("said.\",") {
                prop_assert_eq!(&kept["first"], "All is said.");
            }
            let kept = kept["items"].as_array().cloned().unwrap_or_default();
            for (kept, item) in kept.iter().zip(&items) {
                prop_assert!(item.starts_with(kept.as_str().unwrap()));
            }
            prop_assert!(kept.len() <= items.len());
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "[\\[\\]{}\":,a1. \\\\]{0,200}") {
            let _ = close_truncated(&text);
        }
    }
}

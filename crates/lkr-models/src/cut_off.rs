//! What stands in JSON that was cut off.

use serde_json::Value;

/// How many places are tried where it may be closed, from the end.
const TRIES: usize = 64;

/// The longest beginning of an object that can be closed, closed. Of a text within it whole sentences stay; where not
/// even one is whole, it goes.
pub(crate) fn closed(text: &str) -> Option<Value> {
    let text = text.get(text.find('{')?..)?;
    let parsed = |place: &Place| {
        let beginning = text.get(..place.at)?;
        serde_json::from_str(&format!("{beginning}{}", place.ending)).ok()
    };
    places(text).iter().rev().take(TRIES).find_map(parsed)
}

/// Where a text may end, and with what.
struct Place {
    at: usize,
    ending: String,
}

fn places(text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    // What closes what is open, the outermost first.
    let mut open = Vec::new();
    let (mut quoted, mut escaped, mut ended) = (false, false, false);
    for (at, c) in text.char_indices() {
        let after = at + c.len_utf8();
        if quoted {
            if ended && c.is_whitespace() {
                places.push(Place { at, ending: ending(&open, "\"") });
            }
            ended = !escaped && ".!?。！？".contains(c);
            if ended && !c.is_ascii() {
                places.push(Place { at: after, ending: ending(&open, "\"") });
            }
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            if !quoted {
                places.push(Place { at: after, ending: ending(&open, "") });
            }
            continue;
        }
        match c {
            '"' => (quoted, ended) = (true, false),
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => drop(open.pop()),
            _ => {}
        }
        match c {
            ',' => places.push(Place { at, ending: ending(&open, "") }),
            '{' | '[' | '}' | ']' => places.push(Place { at: after, ending: ending(&open, "") }),
            _ => {}
        }
    }
    places
}

fn ending(open: &[char], first: &str) -> String {
    first.chars().chain(open.iter().rev().copied()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_whole_stays() {
        let check = |text: &str, expected: Value| assert_eq!(closed(text), Some(expected), "{text}");
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
        assert_eq!((closed("no"), closed("")), (None, None));
    }

    proptest! {
        /// What was whole before the cut stays, and nothing comes that was not there.
        #[test]
        fn wherever_it_is_cut(items in prop::collection::vec("[a-c. \"\\\\é。]{0,9}", 0..6), at in 0_usize..200) {
            let whole = json!({ "first": "All is said.", "items": items });
            let text = whole.to_string();
            let cut: String = text.chars().take(at).collect();
            let kept = closed(&cut);
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
        fn whatever_it_is(text in "[\\[\\]{}\":,a1. \\\\]{0,200}") {
            let _ = closed(&text);
        }
    }
}

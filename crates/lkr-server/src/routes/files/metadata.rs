//! The `metadata` part of a form.

use lkr::Metadata;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The byte order mark that some programs write before UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Parses the `metadata` part. Anything but a JSON object is ignored with a warning; values become strings.
pub(super) fn parse(text: &[u8], warnings: &mut Vec<String>) -> Metadata {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Metadata::new();
    }
    parse_object(text).unwrap_or_else(|problem| {
        warnings.push(format!("metadata {problem} and was ignored"));
        Metadata::new()
    })
}

/// The members of a JSON object, or what is wrong with it.
fn parse_object(text: &[u8]) -> Result<Metadata, String> {
    let no_object = || "is not a JSON object".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| no_object())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => members(text).ok_or_else(no_object),
        Err(error) if error.to_string().starts_with("number out of range") => {
            let number: String = number_at(text, error.line(), error.column()).chars().take(40).collect();
            Err(format!("contains a number that is out of range ({number})"))
        }
        _ => Err(no_object()),
    }
}

/// The number at a position of a text, or just before it. Lines and columns are counted from 1, columns in bytes.
fn number_at(text: &str, line: usize, column: usize) -> &str {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let (before, after) = line.split_at_checked(column).unwrap_or((line, ""));
    let is_other = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.');
    let begin = before.rfind(is_other).map_or(0, |at| at + 1);
    let end = before.len() + after.find(is_other).unwrap_or(after.len());
    line.get(begin..end).unwrap_or_default()
}

/// The members of a JSON object. Numbers keep their spelling, because a parsed number may lose digits.
fn members(object: &str) -> Option<Metadata> {
    let mut members = Metadata::new();
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        rest = rest.trim_start().trim_start_matches(',').trim_start();
        if rest.starts_with('}') {
            return Some(members);
        }
        let (key, value) = first_value::<String>(rest)?;
        let value = value.trim_start().strip_prefix(':')?.trim_start();
        let (parsed, after) = first_value::<Value>(value)?;
        let text = match parsed {
            Value::String(text) => text,
            Value::Number(_) => value.strip_suffix(after)?.to_owned(),
            other => other.to_string(),
        };
        members.insert(key, text);
        rest = after;
    }
}

/// The JSON value at the start of a text, and the rest of the text.
fn first_value<T: DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_object_values_become_strings_and_other_json_is_ignored() {
        let mut warnings = Vec::new();
        assert!(parse(b" \n", &mut warnings).is_empty() && warnings.is_empty());
        let found = parse(br#"{"a": "x", "b": 1, "c": true, "d": null, "e": [1, {"f": 2}]}"#, &mut warnings);
        let pairs: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("a", "x"), ("b", "1"), ("c", "true"), ("d", "null"), ("e", r#"[1,{"f":2}]"#)]);
        let numbers =
            br#" { "a":18446744073709551616 ,"b" : -0.10,"c":1e5, "a}": "},", "d":12345678901234567890}"#;
        let found = parse(numbers, &mut warnings);
        let pairs: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [("a", "18446744073709551616"), ("a}", "},"), ("b", "-0.10"), ("c", "1e5")];
        assert_eq!(pairs, [&expected[..], &[("d", "12345678901234567890")]].concat());
        assert!(parse(b"{}", &mut warnings).is_empty() && warnings.is_empty());
        for wrong in ["[]", "{", "\"a\"", "nonsense"] {
            assert!(parse(wrong.as_bytes(), &mut warnings).is_empty());
        }
        assert!(parse(b"\xff{", &mut warnings).is_empty());
        assert_eq!(warnings.len(), 5);
        assert_eq!(warnings.first().unwrap(), "metadata is not a JSON object and was ignored");
    }

    #[test]
    fn byte_order_mark_before_metadata_is_skipped() {
        let mut warnings = Vec::new();
        let found = parse(b"\xef\xbb\xbf{\"a\": \"x\"}", &mut warnings);
        assert_eq!((found.len(), &warnings[..]), (1, &[][..]));
        assert!(parse(b"\xef\xbb\xbf \n", &mut warnings).is_empty() && warnings.is_empty());
    }

    #[test]
    fn number_out_of_range_is_named_in_the_warning() {
        for (text, number) in [
            (r#"{"a": 1e400}"#, "1e400"),
            ("{\"a\": 1,\n \"b\": [-2.5E+999, 3]}", "-2.5E+999"),
            ("{\"ä\": 1e400, \"b\": 2}", "1e400"),
        ] {
            let mut warnings = Vec::new();
            assert!(parse(text.as_bytes(), &mut warnings).is_empty());
            assert_eq!(
                warnings,
                [format!("metadata contains a number that is out of range ({number}) and was ignored")]
            );
        }
    }
}

//! The part `metadata` of a form.

use lkr::Metadata;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What some programs write before a text in UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// The part `metadata`: what is no JSON object is ignored, and values that are no strings become such.
pub(super) fn read(text: &[u8], warnings: &mut Vec<String>) -> Metadata {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    if text.trim_ascii().is_empty() {
        return Metadata::new();
    }
    object(text).unwrap_or_else(|what| {
        warnings.push(format!("metadata {what} and was ignored"));
        Metadata::new()
    })
}

/// The members of a text that is a JSON object; else what is wrong with it.
fn object(text: &[u8]) -> Result<Metadata, String> {
    let none = || "is no JSON object".to_owned();
    let text = std::str::from_utf8(text).map_err(|_| none())?;
    match serde_json::from_str(text) {
        Ok(Value::Object(_)) => members(text).ok_or_else(none),
        Err(error) if error.to_string().starts_with("number out of range") => {
            let number: String = number_at(text, error.line(), error.column()).chars().take(40).collect();
            Err(format!("holds a number that is out of range ({number})"))
        }
        _ => Err(none()),
    }
}

/// The number that ends, or is, at a place in a text. Lines and columns are counted from 1, columns in bytes.
fn number_at(text: &str, line: usize, column: usize) -> &str {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let (before, after) = line.split_at_checked(column).unwrap_or((line, ""));
    let is_other = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '+' | '-' | '.');
    let begin = before.rfind(is_other).map_or(0, |at| at + 1);
    let end = before.len() + after.find(is_other).unwrap_or(after.len());
    line.get(begin..end).unwrap_or_default()
}

/// The members of a JSON object. A number is taken as it was written: most programs' numbers do not hold all of them.
fn members(object: &str) -> Option<Metadata> {
    let mut members = Metadata::new();
    let mut rest = object.trim_start().strip_prefix('{')?;
    loop {
        rest = rest.trim_start().trim_start_matches(',').trim_start();
        if rest.starts_with('}') {
            return Some(members);
        }
        let (key, value) = first::<String>(rest)?;
        let value = value.trim_start().strip_prefix(':')?.trim_start();
        let (parsed, after) = first::<Value>(value)?;
        let text = match parsed {
            Value::String(text) => text,
            Value::Number(_) => value.strip_suffix(after)?.to_owned(),
            other => other.to_string(),
        };
        members.insert(key, text);
        rest = after;
    }
}

/// The JSON value at the start of a text, and what follows it.
fn first<T: DeserializeOwned>(text: &str) -> Option<(T, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<T>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_an_object_or_nothing() {
        let mut warnings = Vec::new();
        assert!(read(b" \n", &mut warnings).is_empty() && warnings.is_empty());
        let found = read(br#"{"a": "x", "b": 1, "c": true, "d": null, "e": [1, {"f": 2}]}"#, &mut warnings);
        let pairs: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("a", "x"), ("b", "1"), ("c", "true"), ("d", "null"), ("e", r#"[1,{"f":2}]"#)]);
        let numbers =
            br#" { "a":18446744073709551616 ,"b" : -0.10,"c":1e5, "a}": "},", "d":12345678901234567890}"#;
        let found = read(numbers, &mut warnings);
        let pairs: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let expected = [("a", "18446744073709551616"), ("a}", "},"), ("b", "-0.10"), ("c", "1e5")];
        assert_eq!(pairs, [&expected[..], &[("d", "12345678901234567890")]].concat());
        assert!(read(b"{}", &mut warnings).is_empty() && warnings.is_empty());
        for wrong in ["[]", "{", "\"a\"", "nonsense"] {
            assert!(read(wrong.as_bytes(), &mut warnings).is_empty());
        }
        assert!(read(b"\xff{", &mut warnings).is_empty());
        assert_eq!(warnings.len(), 5);
        assert_eq!(warnings.first().unwrap(), "metadata is no JSON object and was ignored");
    }

    #[test]
    fn metadata_may_begin_with_a_mark_of_its_encoding() {
        let mut warnings = Vec::new();
        let found = read(b"\xef\xbb\xbf{\"a\": \"x\"}", &mut warnings);
        assert_eq!((found.len(), &warnings[..]), (1, &[][..]));
        assert!(read(b"\xef\xbb\xbf \n", &mut warnings).is_empty() && warnings.is_empty());
    }

    #[test]
    fn numbers_that_are_out_of_range_are_named() {
        for (text, number) in [
            (r#"{"a": 1e400}"#, "1e400"),
            ("{\"a\": 1,\n \"b\": [-2.5E+999, 3]}", "-2.5E+999"),
            ("{\"ä\": 1e400, \"b\": 2}", "1e400"),
        ] {
            let mut warnings = Vec::new();
            assert!(read(text.as_bytes(), &mut warnings).is_empty());
            assert_eq!(
                warnings,
                [format!("metadata holds a number that is out of range ({number}) and was ignored")]
            );
        }
    }
}

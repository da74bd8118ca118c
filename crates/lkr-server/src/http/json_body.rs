//! JSON bodies: read within a size limit, a time limit and a total memory budget, and parsed strictly.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
};

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderMap},
};
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer, de};
use serde_json::error::Category;

use super::{
    client_quota::{QuotaLimits, QuotaShare},
    request_body::RequestBody,
};
use crate::error::{ApiError, ErrorCode};

/// The size limit of bodies that describe an account, a key, a webhook or settings.
pub(crate) const SMALL_BODY_BYTES: usize = 64 * 1024;

/// The granularity of the memory of bodies: what a body takes that has just begun.
const PAGE_BYTES: usize = 4 * 1024;

/// The limits of the memory of bodies. The largest body has 98 MiB: a text of 16 MiB with every character escaped.
/// Anonymous requests are searches and logins, which are small. See docs/studies.md#limits-by-client.
pub(crate) const BODY_LIMITS: QuotaLimits = QuotaLimits {
    accounts: 256 * 1024 * 1024,
    per_account: 128 * 1024 * 1024,
    anonymous: 64 * 1024 * 1024,
    per_address: 8 * 1024 * 1024,
};

/// A body in memory. Dropping it returns its memory to the quota.
pub(super) struct BufferedBody {
    bytes: Vec<u8>,
    _memory: QuotaShare,
}

impl AsRef<[u8]> for BufferedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(
    request: &HttpRequest,
    limit: usize,
    mut memory: QuotaShare,
) -> Result<BufferedBody, ApiError> {
    let too_large = || ApiError::too_large(format!("the body is larger than {limit} bytes"));
    if content_length(request.headers()).is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let Some(mut stream) = RequestBody::of(request) else {
        return Ok(BufferedBody { bytes, _memory: memory });
    };
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))?;
        let length = bytes.len() + chunk.len();
        if length > limit {
            return Err(too_large());
        }
        if !memory.grow_to(length.next_multiple_of(PAGE_BYTES)) {
            return Err(too_many_bodies());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(BufferedBody { bytes, _memory: memory })
}

/// The refusal of a body for which the quotas leave no memory.
pub(super) fn too_many_bodies() -> ApiError {
    ApiError::new(ErrorCode::Overloaded, "too many large requests at once")
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body whose content type is not JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::wrong_content_type(format!(
            "the content type must be application/json, not {essence:?}"
        )));
    }
    check_content_encoding(headers)
}

/// Refuses a compressed body.
pub(super) fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match encoding {
        None | Some("identity") => Ok(()),
        Some(other) => {
            Err(ApiError::wrong_content_type(format!("content encoding {other:?} is not supported")))
        }
    }
}

/// Parses a JSON object. An error names the key of the wrong value. Arrays are refused: serde would accept one for a
/// struct.
pub(crate) fn parse<T: de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let malformed =
        |error: serde_json::Error| ApiError::invalid(format!("the body is not valid JSON: {error}"));
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if first != Some(&b'{') {
        let _: de::IgnoredAny = serde_json::from_slice(bytes).map_err(malformed)?;
        return Err(ApiError::invalid("the body is not a JSON object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        match error.classify() {
            Category::Data if path == "." => ApiError::invalid(without_type_names(&error)),
            Category::Data => ApiError::invalid_parameter(&path, without_type_names(&error)),
            // serde_json says so of a number in the place of a name, too.
            Category::Syntax
                if error.to_string().starts_with("expected value")
                    && serde_json::from_slice::<de::IgnoredAny>(bytes).is_ok() =>
            {
                ApiError::invalid_parameter(&path, "the value has the wrong type")
            }
            _ => malformed(error),
        }
    })?;
    json.end().map_err(malformed)?;
    Ok(parsed)
}

/// The message of an error of serde with the JSON type that was expected, where serde names the type of this program.
fn without_type_names(error: &serde_json::Error) -> String {
    const KINDS: [(&str, &str); 3] = [
        ("expected struct ", "an object"),
        ("expected enum ", "a string"),
        ("expected unit struct ", "null"),
    ];
    let message = error.to_string();
    let named = KINDS.iter().find_map(|&(start, json)| Some((message.rsplit_once(start)?, json)));
    let Some(((before, after), json)) = named else { return message };
    let rest = after.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
    format!("{before}expected {json}{rest}")
}

/// A JSON object without keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EmptyObject {}

/// A struct that is deserialised from a JSON object alone. Serde would accept an array, too.
#[derive(Debug)]
pub(crate) struct JsonObject<T>(pub(crate) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
            type Value = JsonObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(de::value::MapAccessDeserializer::new(map)).map(JsonObject)
            }
        }

        deserializer.deserialize_map(Visitor(std::marker::PhantomData))
    }
}

/// Deserialises a struct from a JSON object alone.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    JsonObject::deserialize(deserializer).map(|JsonObject(object)| object)
}

/// Deserialises an optional struct from a JSON object or null alone.
pub(crate) fn optional_object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.map(|JsonObject(object)| object))
}

/// Deserialises structs from an array of JSON objects.
pub(crate) fn objects<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<JsonObject<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|JsonObject(object)| object).collect())
}

/// The most keys of a map of strings that are read: far more than the metadata of a document may have. Chosen, not measured.
const MAX_MAP_KEYS: usize = 1_024;

/// Deserialises an optional map of strings from a JSON object or null. A duplicate key is an error. The values may be
/// optional themselves.
pub(crate) fn string_map<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, V>>, D::Error> {
    struct StringMap<V>(BTreeMap<String, V>);

    struct Visitor<V>(std::marker::PhantomData<V>);

    impl<'de, V: Deserialize<'de>> de::Visitor<'de> for Visitor<V> {
        type Value = StringMap<V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of strings")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<StringMap<V>, A::Error> {
            let mut strings = BTreeMap::new();
            while let Some((key, value)) = map.next_entry::<String, V>()? {
                if strings.len() == MAX_MAP_KEYS {
                    return Err(de::Error::custom(format_args!("more than {MAX_MAP_KEYS} keys")));
                }
                match strings.entry(key) {
                    Entry::Vacant(entry) => drop(entry.insert(value)),
                    Entry::Occupied(entry) => {
                        return Err(de::Error::custom(format_args!("duplicate key {:?}", entry.key())));
                    }
                }
            }
            Ok(StringMap(strings))
        }
    }

    impl<'de, V: Deserialize<'de>> Deserialize<'de> for StringMap<V> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor(std::marker::PhantomData))
        }
    }

    Ok(Option::<StringMap<V>>::deserialize(deserializer)?.map(|StringMap(strings)| strings))
}

/// A secret in a body. No message and no log line repeats it.
#[derive(Clone)]
pub(crate) struct SecretInput(pub(crate) String);

impl fmt::Debug for SecretInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

impl<'de> Deserialize<'de> for SecretInput {
    /// Serde's own error message would quote a value of a wrong type.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(de::Error::custom("a secret is a string")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(rename = "inner")]
        _inner: Vec<Inner>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[serde(rename = "kind")]
        _kind: Kind,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        Small,
    }

    #[test]
    fn message_names_the_json_type_that_was_expected() {
        let message = |body: &str| parse::<Outer>(body.as_bytes()).unwrap_err().message;
        for (body, expected) in [
            (r#"{"inner": [null]}"#, "inner[0]: invalid type: null, expected an object"),
            (
                r#"{"inner": ["x, expected struct Y"]}"#,
                r#"string "x, expected struct Y", expected an object"#,
            ),
            (r#"{"inner": [{"kind": "small"}, {"kind": 1}]}"#, "inner[1].kind: the value has the wrong type"),
            (r#"{"inner": [{"kind": "small"}, {"kind": }]}"#, "the body is not valid JSON: "),
        ] {
            let message = message(body);
            assert!(message.contains(expected), "{body}: {message}");
            assert!(!message.contains("Inner") && !message.contains("Kind"), "{body}: {message}");
        }
    }
}

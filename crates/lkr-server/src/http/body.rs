//! Bodies: read under a limit, in bounded time, out of a bounded total, and parsed strictly.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::Arc,
};

use actix_web::{
    HttpRequest,
    http::header::{self, HeaderMap},
};
use futures_util::StreamExt;
use serde::{Deserialize, Deserializer, de};
use serde_json::error::Category;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::incoming::Incoming;
use crate::error::{ApiError, Code};

/// The granularity of the budget.
const UNIT: usize = 64 * 1024;

/// The memory that the bodies of all requests together may take.
#[derive(Debug)]
pub(crate) struct BodyBudget {
    units: Arc<Semaphore>,
}

impl BodyBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { units: Arc::new(Semaphore::new(bytes / UNIT)) }
    }

    /// Takes what `bytes` more need beyond the units already `held`.
    fn grow(&self, held: &mut Vec<OwnedSemaphorePermit>, bytes: usize) -> Result<(), ApiError> {
        while held.len() < bytes / UNIT {
            let permit = Arc::clone(&self.units).try_acquire_owned();
            let busy = |_| ApiError::new(Code::Overloaded, "too many large requests at once");
            held.push(permit.map_err(busy)?);
        }
        Ok(())
    }
}

/// A body and its share of the budget, which it gives back when it goes.
pub(crate) struct Body {
    bytes: Vec<u8>,
    _share: Vec<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Body {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read(request: &HttpRequest, limit: usize, budget: &BodyBudget) -> Result<Body, ApiError> {
    let too_large = || ApiError::too_large(format!("the body is larger than {limit} bytes"));
    if content_length(request.headers()).is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let mut body = Body { bytes: Vec::new(), _share: Vec::new() };
    let Some(mut incoming) = Incoming::of(request) else { return Ok(body) };
    while let Some(chunk) = incoming.next().await {
        let chunk = chunk.map_err(|error| ApiError::invalid(format!("the body cannot be read: {error}")))?;
        let length = body.bytes.len() + chunk.len();
        if length > limit {
            return Err(too_large());
        }
        budget.grow(&mut body._share, length)?;
        body.bytes.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body that does not say that it is JSON.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), ApiError> {
    let content_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::wrong_content_type(format!(
            "the content type is application/json here, not {essence:?}"
        )));
    }
    check_content_encoding(headers)
}

/// Refuses a body that is packed.
pub(super) fn check_content_encoding(headers: &HeaderMap) -> Result<(), ApiError> {
    let encoding = headers.get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match encoding {
        None | Some("identity") => Ok(()),
        Some(other) => {
            Err(ApiError::wrong_content_type(format!("content encoding {other:?} is not supported")))
        }
    }
}

/// Parses a JSON object, and names the key of a value that is none. Serde takes an array for a struct as well, which
/// nobody means.
pub(super) fn parse<T: de::DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let malformed = |error: serde_json::Error| ApiError::invalid(format!("the body is not JSON: {error}"));
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
            Category::Data if path == "." => ApiError::invalid(error.to_string()),
            Category::Data => ApiError::invalid(format!("{path}: {error}")),
            _ => malformed(error),
        }
    })?;
    json.end().map_err(malformed)?;
    Ok(parsed)
}

/// An object without keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Deserialises an optional struct from an object or null, and from nothing else.
pub(crate) fn object<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    struct Visitor<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> de::Visitor<'de> for Visitor<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(de::value::MapAccessDeserializer::new(map)).map(Some)
        }
    }

    deserializer.deserialize_any(Visitor(std::marker::PhantomData))
}

/// Deserialises optional texts by key, which may be optional themselves, from an object that has each key once, or
/// null.
pub(crate) fn texts<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<BTreeMap<String, V>>, D::Error> {
    struct Texts<V>(BTreeMap<String, V>);

    struct Visitor<V>(std::marker::PhantomData<V>);

    impl<'de, V: Deserialize<'de>> de::Visitor<'de> for Visitor<V> {
        type Value = Texts<V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of strings")
        }

        fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Texts<V>, A::Error> {
            let mut texts = BTreeMap::new();
            while let Some((key, text)) = map.next_entry::<String, V>()? {
                match texts.entry(key) {
                    Entry::Vacant(place) => drop(place.insert(text)),
                    Entry::Occupied(taken) => {
                        return Err(de::Error::custom(format_args!("duplicate key {:?}", taken.key())));
                    }
                }
            }
            Ok(Texts(texts))
        }
    }

    impl<'de, V: Deserialize<'de>> Deserialize<'de> for Texts<V> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserializer.deserialize_map(Visitor(std::marker::PhantomData))
        }
    }

    Ok(Option::<Texts<V>>::deserialize(deserializer)?.map(|Texts(texts)| texts))
}

/// A text that no message and no log may repeat.
#[derive(Clone)]
pub(crate) struct Secret(pub(crate) String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("********")
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// Serde's own message would quote a value of another type.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self(text)),
            _ => Err(de::Error::custom("a secret is a string")),
        }
    }
}

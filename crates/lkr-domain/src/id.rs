//! Identifiers: 128 bits, written as 32 lower-case hexadecimal characters.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use sha2::{Digest, Sha256};

use crate::{Clock, Layer, SystemClock};

/// The text is not 32 lower-case hexadecimal characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseIdError;

impl fmt::Display for ParseIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id is 32 lower-case hexadecimal characters")
    }
}

impl std::error::Error for ParseIdError {}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// The id with these 16 bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The 16 bytes of the id.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(std::str::from_utf8(&hex(&self.0)).map_err(|_| fmt::Error)?)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                parse_hex(text).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let text = hex(&self.0);
                serializer.serialize_str(std::str::from_utf8(&text).map_err(ser::Error::custom)?)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

id! {
    /// A document. Ids made by [`DocId::new`] sort by creation time.
    DocId
}
id! {
    /// An ingestion task. Ids made by [`TaskId::new`] sort by creation time.
    TaskId
}
id! {
    /// The id of an API key; it is not secret. Ids made by [`KeyId::new`] sort by creation time.
    KeyId
}
id! {
    /// An entry of an audit log. Ids made by [`AuditId::new`] sort by creation time.
    AuditId
}
id! {
    /// A webhook. Ids made by [`WebhookId::new`] sort by creation time.
    WebhookId
}
id! {
    /// An event that webhooks are notified of. Ids made by [`EventId::new`] sort by creation time.
    EventId
}
id! {
    /// A group of accounts. Ids made by [`GroupId::new`] sort by creation time.
    GroupId
}
id! {
    /// A point of a collection: an L1 record, a node or a chunk.
    PointId
}

macro_rules! time_ordered_ids {
    ($($name:ident),*) => {$(
        impl $name {
            /// A new id: a version 7 UUID, greater than all that this process created before.
            #[must_use]
            #[expect(clippy::new_without_default, reason = "each call returns another id")]
            pub fn new() -> Self {
                Self::new_by(&SystemClock)
            }

            /// A new id of a clock.
            #[must_use]
            pub fn new_by(clock: &dyn Clock) -> Self {
                Self(clock.new_uuid().into_bytes())
            }

            /// When it was made, in milliseconds since 1970.
            #[must_use]
            pub const fn unix_ms(&self) -> u64 {
                let [a, b, c, d, e, f, ..] = self.0;
                u64::from_be_bytes([0, 0, a, b, c, d, e, f])
            }
        }
    )*};
}

time_ordered_ids!(DocId, TaskId, KeyId, AuditId, WebhookId, EventId, GroupId);

impl PointId {
    /// The id of the `ordinal`-th point of `layer` in one revision of a document: the first 16 bytes of the SHA-256 of
    /// the four values. Repeating a write is therefore idempotent: it stores the same points again.
    #[must_use]
    pub fn derive(doc: DocId, revision: u64, layer: Layer, ordinal: u32) -> Self {
        let digest = Sha256::new()
            .chain_update(doc.as_bytes())
            .chain_update(revision.to_be_bytes())
            .chain_update(layer.name())
            .chain_update(ordinal.to_be_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.iter_mut().zip(digest).for_each(|(target, byte)| *target = byte);
        Self(bytes)
    }
}

/// The 32 hexadecimal characters of an id, which are ASCII.
fn hex(bytes: &[u8; 16]) -> [u8; 32] {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
    let mut text = [0; 32];
    for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 0xf)];
    }
    text
}

pub(crate) fn parse_hex(text: &str) -> Result<[u8; 16], ParseIdError> {
    if text.len() != 32 {
        return Err(ParseIdError);
    }
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().as_chunks::<2>().0) {
        let [high, low] = *pair;
        *byte = nibble(high)? << 4 | nibble(low)?;
    }
    Ok(bytes)
}

fn nibble(digit: u8) -> Result<u8, ParseIdError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ParseIdError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_survives_text_and_json() {
        let id = DocId::new();
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(serde_json::from_value::<DocId>(serde_json::to_value(id).unwrap()).unwrap(), id);
    }

    #[test]
    fn parse_of_malformed_text_is_refused() {
        for text in ["", "0", &"0".repeat(33), &"A".repeat(32), &"g".repeat(32), &"é".repeat(16)] {
            assert_eq!(text.parse::<DocId>(), Err(ParseIdError), "{text}");
        }
    }

    #[test]
    fn new_ids_sort_by_creation_and_have_one_spelling() {
        let ids: Vec<_> = (0..1000).map(|_| KeyId::new().to_string()).collect();
        assert!(ids.is_sorted() && ids.iter().all(|id| id.len() == 32));
        for id in &ids {
            assert_eq!(id.parse::<KeyId>().unwrap().to_string(), *id);
        }
        let valid = "0123456789abcdef0123456789abcdef";
        assert!(valid.parse::<AuditId>().is_ok());
        let upper = valid.to_uppercase();
        for invalid in [
            "",
            "0123456789abcdef0123456789abcde",
            &upper,
            "01234567-89ab-cdef-0123-456789abcdef",
            "g123456789abcdef0123456789abcdef",
        ] {
            assert!(invalid.parse::<AuditId>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn new_id_contains_its_time() {
        let before = SystemClock.now().unix_timestamp();
        let ms = TaskId::new().unix_ms() / 1_000;
        let after = SystemClock.now().unix_timestamp();
        assert!((before as u64..=after as u64).contains(&ms));
    }

    #[test]
    fn point_id_differs_by_revision_layer_and_ordinal() {
        let doc = DocId::new();
        let point = PointId::derive(doc, 1, Layer::Chunks, 0);
        assert_eq!(point, PointId::derive(doc, 1, Layer::Chunks, 0));
        assert_ne!(point, PointId::derive(doc, 2, Layer::Chunks, 0));
        assert_ne!(point, PointId::derive(doc, 1, Layer::L3, 0));
        assert_ne!(point, PointId::derive(doc, 1, Layer::Chunks, 1));
    }
}

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use lkr_state::{Error, ErrorKind, Key, Result};
use serde::{Deserialize, Serialize};

/// A step that waits to be merged.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Its id, under which the remote store keeps its receipt.
    pub(crate) id: String,
    /// When it was acknowledged, in milliseconds since 1970.
    at_ms: u64,
    /// Whether the remote store was seen with the sentinel before.
    pub(crate) has_seen_sentinel: bool,
    pub(crate) changes: Vec<Change>,
    /// When it was acknowledged, by a clock that is never set; `None` if an earlier process did it.
    #[serde(skip)]
    at: Option<Instant>,
}

/// A write of a step, with the record before and after it. It has no `Debug` form, because records contain secrets.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) kind: ChangeKind,
    #[serde(with = "base64_value")]
    pub(crate) base: Option<Bytes>,
    /// `None` if the record is deleted.
    #[serde(with = "base64_value")]
    pub(crate) value: Option<Bytes>,
    /// The version that callers saw.
    pub(crate) version: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ChangeKind {
    Put { ttl_ms: Option<u64> },
    Delete,
    Increment,
    Check,
}

impl Entry {
    /// A step that is acknowledged now.
    pub(crate) fn new(id: String, has_seen_sentinel: bool, changes: Vec<Change>) -> Self {
        Self { id, at_ms: now_ms(), has_seen_sentinel, changes, at: Some(Instant::now()) }
    }

    /// How long ago it was acknowledged. After a restart, the wall clock tells; if that was set back, zero.
    pub(crate) fn age(&self) -> Duration {
        match self.at {
            Some(at) => at.elapsed(),
            None => Duration::from_millis(now_ms().saturating_sub(self.at_ms)),
        }
    }
}

impl Change {
    pub(crate) fn ttl(&self) -> Option<Duration> {
        match self.kind {
            ChangeKind::Put { ttl_ms } => ttl_ms.map(Duration::from_millis),
            _ => None,
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a frame says.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    Step(Entry),
    /// The step was merged.
    Merged {
        id: String,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LineRef<'a> {
    Step(&'a Entry),
    Merged { id: &'a str },
}

impl Line {
    pub(super) fn decode(text: &[u8]) -> Result<Self> {
        // The cause is left out, because it may quote a record.
        serde_json::from_slice(text)
            .map_err(|_| Error::new(ErrorKind::Corrupt, "open journal", "a step of the journal is damaged"))
    }

    pub(super) fn encode_step(entry: &Entry) -> Result<Vec<u8>> {
        serde_json::to_vec(&LineRef::Step(entry))
            .map_err(|error| Error::new(ErrorKind::Internal, "append to journal", error))
    }

    pub(super) fn encode_merged(id: &str) -> Vec<u8> {
        serde_json::to_vec(&LineRef::Merged { id }).unwrap_or_default()
    }
}

fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}

/// Values are bytes, and the text of a frame is JSON.
mod base64_value {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &Option<Bytes>, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_ref().map(|value| STANDARD.encode(value)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
        let text: Option<String> = Option::deserialize(deserializer)?;
        let bytes = text.map(|text| STANDARD.decode(text)).transpose();
        bytes.map(|bytes| bytes.map(Bytes::from)).map_err(|_| D::Error::custom("the value is not base64"))
    }
}

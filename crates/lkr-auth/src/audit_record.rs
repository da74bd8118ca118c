//! The stored forms of audit entries. There are very many of them, each for more than a year, so the present form is short.

use lkr_domain::{restore_id, shorten_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::{AuditId, Error, Result, records::damaged};

/// The key prefix of audit entries; the id follows.
pub(crate) const AUDIT: &str = "audit/";

const NS_PER_MS: i128 = 1_000_000;

pub(crate) fn audit_key(id: AuditId) -> String {
    format!("{AUDIT}{id}")
}

/// The id of the entry with this key.
pub(crate) fn audit_id(key: &str) -> Result<AuditId> {
    key.strip_prefix(AUDIT).and_then(|id| id.parse().ok()).ok_or_else(damaged)
}

/// Version 1 of an audit entry. An entry is written in it if version 2 has no place for its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct AuditV1 {
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) at: OffsetDateTime,
    pub(crate) actor: String,
    pub(crate) action: String,
    pub(crate) target: String,
    pub(crate) request_id: String,
    pub(crate) detail: Map<String, Value>,
}

/// Version 2 of an audit entry. Its ids are [short](shorten_id), and like the one in its key.
#[derive(Serialize, Deserialize)]
struct AuditV2 {
    /// The nanoseconds from the time in the id to the change, the actor, the action, the target and the request.
    e: (i64, String, String, String, String),
    /// The detail.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    d: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "v")]
enum AuditRecord {
    #[serde(rename = "1")]
    V1(AuditV1),
    #[serde(rename = "2")]
    V2(AuditV2),
}

pub(crate) fn write_entry(id: AuditId, entry: AuditV1) -> Result<Vec<u8>> {
    let record = match AuditV2::new(id, &entry) {
        Some(short) => AuditRecord::V2(short),
        None => AuditRecord::V1(entry),
    };
    serde_json::to_vec(&record).map_err(|e| Error::internal("write audit entry", e))
}

/// The entry with this key.
pub(crate) fn read_entry(key: &str, value: &[u8]) -> Result<AuditV1> {
    let record: AuditRecord = serde_json::from_slice(value).map_err(|_| damaged())?;
    match record {
        AuditRecord::V1(entry) => Ok(entry),
        AuditRecord::V2(entry) => entry.into_whole(audit_id(key)?).ok_or_else(damaged),
    }
}

impl AuditV2 {
    /// The short form; `None` if the change and the id are centuries apart.
    fn new(id: AuditId, entry: &AuditV1) -> Option<Self> {
        let like = id.as_bytes();
        let since = i64::try_from(entry.at.unix_timestamp_nanos() - made_at(id)).ok()?;
        let AuditV1 { actor, action, target, request_id, detail, .. } = entry;
        let (target, request_id) = (shorten_id(target, like), shorten_id(request_id, like));
        Some(Self { e: (since, actor.clone(), action.clone(), target, request_id), d: detail.clone() })
    }

    /// The entry with this id; `None` if its time, its target or its request is not valid.
    fn into_whole(self, id: AuditId) -> Option<AuditV1> {
        let (since, actor, action, target, request_id) = self.e;
        let at = OffsetDateTime::from_unix_timestamp_nanos(made_at(id) + i128::from(since)).ok()?;
        let (target, request_id) =
            (restore_id(&target, id.as_bytes())?, restore_id(&request_id, id.as_bytes())?);
        Some(AuditV1 { at, actor, action, target, request_id, detail: self.d })
    }
}

/// When an id was made, in nanoseconds since 1970.
fn made_at(id: AuditId) -> i128 {
    i128::from(id.unix_ms()) * NS_PER_MS
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const ID: &str = "019ac8f2a1b37c3d8e9f0a1b2c3d4e01";
    const TARGET: &str = "019ac8f0a1b37a11b2345678c0ffee00";
    const REQUEST: &str = "019ac8f2a1b27b118e9f0a1b2c3d4e02";

    /// What this release writes.
    const SHORT: &str = include_str!("audit_record/v2.json");
    /// What earlier releases wrote.
    const EARLIER: &str = include_str!("audit_record/v1.json");

    fn id() -> AuditId {
        ID.parse().unwrap()
    }

    fn deletion() -> AuditV1 {
        AuditV1 {
            at: datetime!(2025-11-28 05:00:30.123456789 UTC),
            actor: "admin".to_owned(),
            action: "document.delete".to_owned(),
            target: TARGET.to_owned(),
            request_id: REQUEST.to_owned(),
            detail: Map::new(),
        }
    }

    fn again(entry: &AuditV1) -> AuditV1 {
        let written = write_entry(id(), entry.clone()).unwrap();
        read_entry(&audit_key(id()), &written).unwrap()
    }

    #[test]
    fn stored_entries_of_both_forms_are_read_completely() {
        for stored in [SHORT, EARLIER] {
            let read = read_entry(&audit_key(id()), stored.trim_end().as_bytes()).unwrap();
            assert_eq!(read, deletion(), "{stored}");
        }
        let written = write_entry(id(), deletion()).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), SHORT.trim_end());
        assert!(SHORT.len() * 2 < EARLIER.len());
    }

    #[test]
    fn each_field_of_an_entry_is_read_again() {
        let detail = Map::from_iter([("title".to_owned(), Value::from("x")), ("e".to_owned(), Value::Null)]);
        let entries = [
            AuditV1 { detail, ..deletion() },
            AuditV1 { at: datetime!(1970-01-01 0:00 UTC), ..deletion() },
            AuditV1 { at: datetime!(2525-01-01 0:00 UTC), ..deletion() },
            AuditV1 { actor: "first start".to_owned(), request_id: String::new(), ..deletion() },
            AuditV1 { target: "eva".to_owned(), request_id: "a.caller's_id-1".to_owned(), ..deletion() },
            AuditV1 { target: "=é".to_owned(), action: String::new(), ..deletion() },
        ];
        for entry in entries {
            assert_eq!(again(&entry), entry);
        }
    }

    #[test]
    fn short_entry_without_its_id_is_damaged() {
        let short = SHORT.trim_end().as_bytes();
        assert!(read_entry("audit/old", short).is_err());
        assert!(read_entry("audit/old", EARLIER.trim_end().as_bytes()).is_ok());
        assert!(read_entry(&audit_key(id()), SHORT.replace("admin\",", "admin\",1,").as_bytes()).is_err());
        assert!(read_entry(&audit_key(id()), SHORT.replace("\"2\"", "\"3\"").as_bytes()).is_err());
    }
}

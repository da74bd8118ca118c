//! What is done with each record, by its key.

use std::time::Duration;

use lkr_domain::AuditId;
use serde::Deserialize;
use time::OffsetDateTime;

/// What is done with the records of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Copied; they never expire.
    Copy,
    /// Copied with this lifetime, because the store does not tell how much of it has passed.
    CopyFor(Duration),
    /// Copied with what is left until the field `expires_at` of their JSON; without it they never expire.
    CopyUntilExpiry,
    /// Copied with what is left of this lifetime since the field `at` of their JSON, or without it since the id in their key was made.
    CopyForSince(Duration),
    /// Left out: they concern running processes, or are made again.
    LeaveOut,
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// A key prefix that ends with `/`, or a whole key.
    pub key: &'static str,
    /// What is done with these records.
    pub treatment: Treatment,
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Every record that lkr stores. A test compares it with the sources.
pub const TABLE: &[Row] = &[
    // Documents, tasks and what belongs to them: lkr-catalog.
    copy("active/"),
    copy("amend/"),
    copy("arrival/"),
    copy("change/"),
    copy("collections"),
    copy("content/"),
    // Makes concurrent publishes of one text conflict.
    leave_out("content-guard/"),
    copy("cosine-scale/"),
    copy("declined-model"),
    copy("doc/"),
    // For workers that still run what was cancelled.
    leave_out("forgotten-task/"),
    // Held by running processes.
    leave_out("gc-pause/"),
    copy("generation"),
    copy("generation/"),
    copy("gold/"),
    copy("held/"),
    // The lifetime begins again, so a key is remembered for up to two days.
    row("idempotency/", Treatment::CopyFor(DAY)),
    copy("in-space/"),
    // The target gets an id of its own, so that the source does not take the target's texts for its own.
    leave_out("knowledge-base"),
    copy("partial-result/"),
    copy("simhash/"),
    // For processes that follow the fingerprints; all read them at their start.
    leave_out("simhash-change/"),
    // Makes concurrent publishes of near texts conflict.
    leave_out("simhash-guard/"),
    copy("spread/"),
    copy("sweeps"),
    copy("task/"),
    // For processes that watch tasks.
    leave_out("task-change/"),
    copy("task-in/"),
    // Held by tasks that are being processed; the task claims its text again.
    leave_out("text-claims/"),
    copy("trash/"),
    copy("unembedded/"),
    copy("unprinted"),
    copy("upload/"),
    row("upsert/", Treatment::CopyFor(Duration::from_secs(30 * DAY.as_secs()))),
    copy("version"),
    // Accounts: lkr-auth.
    row("audit/", Treatment::CopyForSince(Duration::from_secs(400 * DAY.as_secs()))),
    copy("auth/account/"),
    row("auth/account-key/", Treatment::CopyUntilExpiry),
    copy("auth/admins"),
    copy("auth/initialised"),
    row("auth/key/", Treatment::CopyUntilExpiry),
    row("auth/session/", Treatment::CopyUntilExpiry),
    // Failed logins of the last minutes.
    leave_out("auth/throttle/"),
    // Tells whether a step of a running process was applied: lkr-state-fallback.
    leave_out("fallback/receipt/"),
    // The marker of a migration, which is of its own store.
    leave_out(crate::marker::KEY),
    // Running processes: lkr-state.
    leave_out("leader/"),
    leave_out("process/"),
    leave_out("process-format"),
    // Settings: lkr-settings.
    copy("settings"),
    copy("settings-embedders"),
    // Spaces: lkr-spaces.
    copy("spaces/admissions/"),
    copy("spaces/closed/"),
    copy("spaces/group/"),
    copy("spaces/group-member/"),
    copy("spaces/member/"),
    copy("spaces/space/"),
    copy("spaces/version"),
    // Webhooks: lkr-webhooks.
    copy("webhook/delivery/"),
    copy("webhook/event/"),
    copy("webhook/hooks"),
    copy("webhook-log/"),
];

const fn row(key: &'static str, treatment: Treatment) -> Row {
    Row { key, treatment }
}

const fn copy(key: &'static str) -> Row {
    row(key, Treatment::Copy)
}

const fn leave_out(key: &'static str) -> Row {
    row(key, Treatment::LeaveOut)
}

/// The row of a key; `None` if no part of lkr of this version writes it.
#[must_use]
pub fn row_of(key: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.has(key))
}

/// What is done with the record of a key. Unknown records are copied: a loss could not be undone.
pub(crate) fn treatment_of(key: &str) -> Treatment {
    row_of(key).map_or(Treatment::Copy, |row| row.treatment)
}

/// What the record of a key is counted under.
pub(crate) fn group_of(key: &str) -> &str {
    row_of(key).map_or("(unknown)", |row| row.key)
}

/// How long the copy of a record lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    ForEver,
    For(Duration),
    /// It has passed, or the record is left out.
    Over,
}

impl Treatment {
    /// Whether the records may expire.
    pub(crate) const fn expires(self) -> bool {
        matches!(self, Self::CopyFor(_) | Self::CopyUntilExpiry | Self::CopyForSince(_))
    }

    /// How long the copy of a record with this key and value lives from `now` on.
    pub(crate) fn lifetime(self, key: &str, value: &[u8], now: OffsetDateTime) -> Lifetime {
        let end = match self {
            Self::Copy => None,
            Self::CopyFor(lifetime) => return Lifetime::For(lifetime),
            Self::LeaveOut => return Lifetime::Over,
            Self::CopyUntilExpiry => times(value).expires_at,
            Self::CopyForSince(lifetime) => {
                let at = times(value).at.or_else(|| made_at(key));
                at.and_then(|at| at.checked_add(lifetime.try_into().ok()?))
            }
        };
        match end.map(|end| Duration::try_from(end - now)) {
            None => Lifetime::ForEver,
            Some(Ok(left)) if !left.is_zero() => Lifetime::For(left),
            Some(_) => Lifetime::Over,
        }
    }
}

impl Row {
    fn has(&self, key: &str) -> bool {
        match self.key.ends_with('/') {
            true => key.starts_with(self.key),
            false => key == self.key,
        }
    }
}

/// The times in a record.
#[derive(Default, Deserialize)]
struct Times {
    #[serde(default, with = "time::serde::rfc3339::option")]
    at: Option<OffsetDateTime>,
    #[serde(default, with = "time::serde::rfc3339::option")]
    expires_at: Option<OffsetDateTime>,
}

/// A record that cannot be read has none: whoever reads it finds the damage.
fn times(value: &[u8]) -> Times {
    serde_json::from_slice(value).unwrap_or_default()
}

/// When the id at the end of a key was made. Ids of all kinds begin with that time.
fn made_at(key: &str) -> Option<OffsetDateTime> {
    let (_, id) = key.rsplit_once('/')?;
    let id: AuditId = id.parse().ok()?;
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(id.unix_ms()) * 1_000_000).ok()
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const NOW: OffsetDateTime = datetime!(2026-03-01 12:00 UTC);

    #[test]
    fn each_key_has_one_row() {
        for row in TABLE {
            let key = if row.key.ends_with('/') { format!("{}x", row.key) } else { row.key.to_owned() };
            let rows = TABLE.iter().filter(|other| other.has(&key)).count();
            assert_eq!(rows, 1, "{key}");
        }
        assert_eq!(row_of("generation").unwrap().key, "generation");
        assert_eq!(row_of("generation/default").unwrap().key, "generation/");
        assert_eq!(row_of("generations"), None);
        assert_eq!(treatment_of("from-a-later-version/x"), Treatment::Copy);
    }

    #[test]
    fn lifetime_follows_from_the_times_in_the_value() {
        let session = br#"{"v":"1","username":"u","expires_at":"2026-03-01T13:00:00Z"}"#;
        let lifetime = |treatment: Treatment, value: &[u8], now| treatment.lifetime("x/y", value, now);
        let until = Treatment::CopyUntilExpiry;
        assert_eq!(lifetime(until, session, NOW), Lifetime::For(Duration::from_secs(3_600)));
        assert_eq!(lifetime(until, session, NOW + Duration::from_secs(3_600)), Lifetime::Over);
        assert_eq!(lifetime(until, br#"{"v":"1","expires_at":null}"#, NOW), Lifetime::ForEver);
        assert_eq!(lifetime(until, b"damaged", NOW), Lifetime::ForEver);
        let entry = br#"{"v":"1","at":"2026-02-28T12:00:00Z","actor":"a"}"#;
        assert_eq!(lifetime(Treatment::CopyForSince(2 * DAY), entry, NOW), Lifetime::For(DAY));
        assert_eq!(lifetime(Treatment::CopyForSince(DAY), entry, NOW), Lifetime::Over);
        assert_eq!(lifetime(Treatment::CopyFor(DAY), b"", NOW), Lifetime::For(DAY));
        assert_eq!(lifetime(Treatment::Copy, session, NOW), Lifetime::ForEver);
        assert_eq!(lifetime(Treatment::LeaveOut, session, NOW), Lifetime::Over);
    }

    #[test]
    fn lifetime_without_a_time_in_the_value_follows_from_the_id_in_the_key() {
        let id = AuditId::new();
        let key = format!("audit/{id}");
        let made = made_at(&key).unwrap();
        let lifetime = |now| Treatment::CopyForSince(2 * DAY).lifetime(&key, br#"{"v":"2","e":[]}"#, now);
        assert_eq!(lifetime(made + DAY), Lifetime::For(DAY));
        assert_eq!(lifetime(made + 2 * DAY), Lifetime::Over);
        assert_eq!(made_at("audit/old"), None);
    }
}

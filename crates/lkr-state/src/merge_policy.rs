use std::{collections::BTreeMap, fmt::Debug, time::Duration};

use bytes::Bytes;

use crate::Key;

/// How the records of one crate are written while the store is away, and merged into it when it returns.
///
/// A decorator of a store keeps copies of the mirrored records and acknowledges changes of them while the store does not
/// answer. Later it merges each change with the record that the store has then. Other processes may have changed that
/// record meanwhile, so a policy decides which change wins. Nothing that was revoked or deleted on one of the sides may
/// come back.
pub trait MergePolicy: Debug + Send + Sync + 'static {
    /// The key prefixes of the records that can be read and written while the store is away. All of them are held in
    /// memory.
    fn mirrored(&self) -> &'static [&'static str];

    /// The key prefixes of records that can be written, and not be read, while the store is away. Their keys are unique,
    /// so that an expectation of absence holds. For logs.
    fn write_only(&self) -> &'static [&'static str] {
        &[]
    }

    /// The keys of the records that decide whether `value` may be written to `key`, such as the account of a session. The
    /// merge sees them as they will be after the earlier writes of the same step, so a step must contain a record after
    /// those that it depends on.
    fn depends_on(&self, key: &str, value: &[u8]) -> Vec<Key> {
        let _ = (key, value);
        Vec::new()
    }

    /// How long a record that was read now remains valid, according to its value; `None` if that is not known. A copy of
    /// the record in memory expires then, because a store does not tell when a record expires.
    fn expires_in(&self, key: &str, value: &[u8]) -> Option<Duration> {
        let _ = (key, value);
        None
    }

    /// Whether a step that [checked](crate::Op::Check) the record `base` lost its authority, because the record is `theirs`
    /// now. The other changes of the step are then [`restricting`](OfflineChange::restricting).
    fn is_authority_lost(&self, key: &str, base: Option<&[u8]>, theirs: Option<&[u8]>) -> bool {
        let _ = (key, base, theirs);
        false
    }

    /// Merges a change into the record of the store.
    fn merge(&self, change: &OfflineChange<'_>) -> Merged;
}

/// A change of a record that was acknowledged while the store was away.
#[derive(Debug)]
pub struct OfflineChange<'a> {
    /// The key.
    pub key: &'a str,
    /// The value before the change, as this process knew it; `None` if there was no record.
    pub base: Option<&'a [u8]>,
    /// The value after the change; `None` if the record was deleted.
    pub ours: Option<&'a [u8]>,
    /// The value that the store has now; `None` if there is no record.
    pub theirs: Option<&'a [u8]>,
    /// The rest of the lifetime that the change gave the record; `None` if it never expires.
    pub ttl: Option<Duration>,
    /// The records that the change [depends on](MergePolicy::depends_on).
    pub related: &'a BTreeMap<Key, Option<Bytes>>,
    /// Whether only what takes rights away may be merged, because the author of the change has lost the right to it.
    pub restricting: bool,
}

impl<'a> OfflineChange<'a> {
    /// The value of a record that the change depends on.
    #[must_use]
    pub fn related(&self, key: &str) -> Option<&'a [u8]> {
        self.related.get(key).and_then(Option::as_deref)
    }

    /// Whether the store's record is the one that the change was made on.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.base == self.theirs
    }

    /// Carries the change out as it was made, unless the store has that value already.
    #[must_use]
    pub fn accept(&self) -> Merged {
        match (self.ours, self.theirs) {
            (ours, theirs) if ours == theirs => Merged::Keep,
            (Some(ours), _) => Merged::Put { value: Bytes::copy_from_slice(ours), ttl: self.ttl },
            (None, _) => Merged::Delete,
        }
    }

    /// The rule for records without one of their own: the change is carried out if the store's record is unchanged;
    /// otherwise the store's record stays.
    #[must_use]
    pub fn accept_if_unchanged(&self) -> Merged {
        match self.ours == self.theirs {
            true => Merged::Keep,
            false if self.restricting => Merged::overruled(self.key, "its author lost the right to it"),
            false if self.is_unchanged() => self.accept(),
            false => Merged::overruled(self.key, "another process changed the record"),
        }
    }
}

/// The result of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merged {
    /// The store's record stays as it is, and nothing of the change is lost by that.
    Keep,
    /// The store's record stays as it is, and the change is lost. The text says what and why, without secrets.
    Overruled(String),
    /// The record is replaced.
    Put {
        /// The new value.
        value: Bytes,
        /// The time to live.
        ttl: Option<Duration>,
    },
    /// The record is deleted.
    Delete,
}

impl Merged {
    /// A change of `subject` that is lost for `reason`.
    #[must_use]
    pub fn overruled(subject: &str, reason: &str) -> Self {
        Self::Overruled(format!("{subject}: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(base: Option<&str>, ours: Option<&str>, theirs: Option<&str>, restricting: bool) -> Merged {
        let [base, ours, theirs] = [base, ours, theirs].map(|value| value.map(str::as_bytes));
        let related = BTreeMap::new();
        OfflineChange { key: "k", base, ours, theirs, ttl: None, related: &related, restricting }
            .accept_if_unchanged()
    }

    fn put(value: &'static str) -> Merged {
        Merged::Put { value: Bytes::from(value), ttl: None }
    }

    #[test]
    fn change_is_accepted_only_if_the_record_is_unchanged() {
        assert_eq!(merge(Some("a"), Some("b"), Some("a"), false), put("b"));
        assert_eq!(merge(None, Some("b"), None, false), put("b"));
        assert_eq!(merge(Some("a"), None, Some("a"), false), Merged::Delete);
        assert_eq!(merge(Some("a"), Some("b"), Some("b"), false), Merged::Keep);
        assert_eq!(merge(Some("a"), None, None, false), Merged::Keep);
        for (base, ours, theirs, restricting) in [
            (Some("a"), Some("b"), Some("c"), false),
            (Some("a"), Some("b"), None, false),
            (None, Some("b"), Some("c"), false),
            (Some("a"), None, Some("c"), false),
            (Some("a"), Some("b"), Some("a"), true),
        ] {
            let merged = merge(base, ours, theirs, restricting);
            assert!(matches!(merged, Merged::Overruled(_)), "{base:?} {ours:?} {theirs:?}: {merged:?}");
        }
    }
}

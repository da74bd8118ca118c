//! Which keys are mirrored, and by which policy.

use std::{sync::Arc, time::Duration};

use lkr_state::{MergePolicy, Op, Write};

/// The policies of all crates whose records are mirrored.
#[derive(Debug)]
pub(crate) struct Policies(Vec<Arc<dyn MergePolicy>>);

impl Policies {
    pub(crate) fn new(policies: Vec<Arc<dyn MergePolicy>>) -> Self {
        Self(policies)
    }

    /// All prefixes of mirrored records.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().flat_map(|policy| policy.mirrored()).copied()
    }

    /// Whether every key that begins with `prefix` is mirrored. So also whether the key `prefix` is.
    pub(crate) fn is_mirrored(&self, prefix: &str) -> bool {
        self.prefixes().any(|mirrored| prefix.starts_with(mirrored))
    }

    /// The policy of a record that is written without the remote store.
    pub(crate) fn of(&self, key: &str) -> Option<&dyn MergePolicy> {
        let has = |prefixes: &[&str]| prefixes.iter().any(|prefix| key.starts_with(prefix));
        let policy = self.0.iter().find(|policy| has(policy.mirrored()) || has(policy.write_only()));
        policy.map(|policy| &**policy)
    }

    /// Whether a step can be applied without the remote store.
    pub(crate) fn covers(&self, writes: &[Write]) -> bool {
        writes.iter().all(|write| match &write.op {
            Op::Put { .. } => self.of(&write.key).is_some(),
            Op::Delete | Op::Increment | Op::Check => self.is_mirrored(&write.key),
        })
    }

    pub(crate) fn expires_in(&self, key: &str, value: &[u8]) -> Option<Duration> {
        self.of(key).and_then(|policy| policy.expires_in(key, value))
    }
}

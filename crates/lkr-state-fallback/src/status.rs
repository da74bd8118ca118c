use std::time::SystemTime;

/// What a readiness probe says about the remote store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FallbackStatus {
    /// Whether calls are answered by the remote store. If not, the service is degraded.
    pub is_remote_used: bool,
    /// Since when calls are answered from memory; `None` if they are not.
    pub away_since: Option<SystemTime>,
    /// Whether the remote store answers and has lost its records. Nothing is merged until they are rebuilt.
    pub is_remote_empty: bool,
    /// The changes that wait to be merged into the remote store.
    pub journal_entries: usize,
    /// Whether all mirrored records are in memory. If not, those that are missing are unavailable during an outage.
    pub is_mirror_complete: bool,
    /// The records in memory.
    pub mirror_records: usize,
    /// The memory that they take, in bytes.
    pub mirror_bytes: usize,
}

use std::{path::PathBuf, time::Duration};

use lkr_state::Key;

/// The options of [`FallbackState`](crate::FallbackState).
#[derive(Debug, Clone)]
pub struct FallbackConfig {
    /// The folder of the journal: on a disk of this machine, and of this process alone. It is created if it is missing.
    pub folder: PathBuf,
    /// How often the mirror is compared with the remote store.
    pub refresh_interval: Duration,
    /// How often a remote store that is away is asked whether it is back.
    pub probe_interval: Duration,
    /// The memory that the mirror takes at most, in bytes. What does not fit is not available while the remote
    /// store is away.
    pub max_mirror_bytes: usize,
    /// A mirrored record that never disappears once it is written. If it is missing, the remote store came back empty:
    /// nothing is merged into it until the record is there again. None by default.
    pub sentinel: Option<Key>,
}

impl FallbackConfig {
    /// A mirror that is refreshed every 30 s and holds 256 MiB at most; probes every second. Chosen, not measured.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            refresh_interval: Duration::from_secs(30),
            probe_interval: Duration::from_secs(1),
            max_mirror_bytes: 256 << 20,
            sentinel: None,
        }
    }
}

use lkr_state::{MergePolicy, Merged, OfflineChange};

/// How settings are merged that were changed while the store was away: a change counts if the store's record is unchanged;
/// otherwise the store's record stays.
#[derive(Debug, Clone, Copy, Default)]
pub struct SettingsMergePolicy;

impl MergePolicy for SettingsMergePolicy {
    fn mirrored(&self) -> &'static [&'static str] {
        &["settings"]
    }

    fn merge(&self, change: &OfflineChange<'_>) -> Merged {
        change.accept_if_unchanged()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{previous_embedder, records};

    #[test]
    fn all_records_of_this_crate_are_mirrored() {
        for key in [records::KEY, previous_embedder::KEY] {
            assert!(SettingsMergePolicy.mirrored().iter().any(|prefix| key.starts_with(prefix)), "{key}");
        }
    }
}

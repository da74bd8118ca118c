use lkr_state::{Merged, OfflineChange};

use super::put;
use crate::records::{FailuresV1, decode, encode};

/// How many failures are kept. Limits are far below it.
const MAX_FAILURES: usize = 1_000;

/// Merges counted failures: those that were added during the outage are added to the store's. A reset counts if the other side counted nothing meanwhile.
pub(super) fn merge(change: &OfflineChange<'_>) -> Merged {
    let failures = |value: Option<&[u8]>| {
        value.and_then(|value| decode::<FailuresV1>(value).ok()).unwrap_or_default().at_ms
    };
    if change.is_unchanged() {
        return change.accept();
    }
    let Some(ours) = change.ours else { return Merged::Keep };
    let mut added = failures(Some(ours));
    // Two failures can have the same time, so each one of the base stands for one of ours.
    for known in failures(change.base) {
        if let Some(at) = added.iter().position(|&time| time == known) {
            added.swap_remove(at);
        }
    }
    if added.is_empty() {
        return Merged::Keep;
    }
    let mut at_ms = failures(change.theirs);
    at_ms.extend(added);
    at_ms.sort_unstable();
    at_ms.drain(..at_ms.len().saturating_sub(MAX_FAILURES));
    encode(FailuresV1 { at_ms }).map_or(Merged::Keep, |value| put(change, &value))
}

use lkr_state::{Merged, OfflineChange};

use super::put;
use crate::records::{FailuresV1, decode, encode};

/// How many failures are kept. Limits are far below it.
const MAX_FAILURES: usize = 1_000;

/// Merges counted failures: those of both sides count. A reset counts if the other side counted nothing meanwhile.
pub(super) fn merge(change: &OfflineChange<'_>) -> Merged {
    let failures = |value: Option<&[u8]>| {
        value.and_then(|value| decode::<FailuresV1>(value).ok()).unwrap_or_default().at_ms
    };
    if change.is_unchanged() {
        return change.accept();
    }
    let Some(ours) = change.ours else { return Merged::Keep };
    let theirs = failures(change.theirs);
    let mut at_ms = failures(Some(ours));
    at_ms.extend(theirs.iter().copied());
    at_ms.sort_unstable();
    at_ms.dedup();
    at_ms.drain(..at_ms.len().saturating_sub(MAX_FAILURES));
    if at_ms == theirs {
        return Merged::Keep;
    }
    encode(FailuresV1 { at_ms }).map_or(Merged::Keep, |value| put(change, &value))
}

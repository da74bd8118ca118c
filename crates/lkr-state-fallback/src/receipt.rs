//! Receipts: records of the remote store that tell whether a step was applied.
//!
//! Each step that could also go to the journal writes a receipt with a random id, and expects that it is absent. If the
//! remote store fails before it answers, nobody knows whether it applied the step. The merge writes the same receipt: it is
//! refused if the step was applied, and a step that arrives even later is refused because of the merge.

use std::time::Duration;

use lkr_domain::hex;
use lkr_state::{Expect, Key, Write};

/// The key prefix of receipts; the id follows.
pub(crate) const PREFIX: &str = "fallback/receipt/";

/// How many receipts of answered steps one step deletes.
pub(crate) const DELETED_AT_ONCE: usize = 4;

/// How many receipts of answered steps are noted for deletion. Further ones expire.
pub(crate) const MAX_NOTED: usize = 1_024;

/// How long the remote store keeps a receipt that nothing deletes: longer than an outage lasts. A step with an unknown
/// outcome that is merged later than that may be merged twice. Chosen, not measured.
const TTL: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A random id.
pub(crate) fn new_id() -> String {
    hex(&rand::random::<[u8; 16]>())
}

pub(crate) fn key(id: &str) -> Key {
    format!("{PREFIX}{id}")
}

/// The write of a receipt.
pub(crate) fn write(id: &str) -> Write {
    Write::put_for(key(id), Expect::Absent, "1", TTL)
}

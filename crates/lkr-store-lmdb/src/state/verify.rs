//! Records and their expiries.

use std::borrow::Cow;

use heed::RoTxn;

use super::{NEVER, StoredRecord, VERSIONS, expiry_key};
use crate::{
    codec::correct_bit_flip,
    env::Kb,
    error::InternalResult,
    verify::{Finding, check_counter},
};

/// Checks every record: it is readable, and the table of expiries lists exactly the records that expire.
pub(crate) fn verify(kb: &Kb, txn: &RoTxn, findings: &mut Vec<Finding>) -> InternalResult<()> {
    let mut latest = 0;
    for row in kb.tables.state.iter(txn)? {
        let (key, checksummed) = row?;
        let name = String::from_utf8_lossy(key);
        let what = || format!("the record {name} is damaged");
        let correct_bit_flip = correct_bit_flip(checksummed).filter(|_| str::from_utf8(key).is_ok());
        let Some(stored) =
            correct_bit_flip.as_deref().and_then(|checksummed| StoredRecord::decode(checksummed, &name).ok())
        else {
            findings.push(Finding::unreadable(what(), "state", key));
            continue;
        };
        if let Some(Cow::Owned(whole)) = &correct_bit_flip {
            findings.push(Finding::flipped(what(), "state", key, whole));
        }
        latest = latest.max(stored.version);
        let expiry = expiry_key(stored.expires, key);
        if stored.expires != NEVER && kb.tables.expiries.get(txn, &expiry)?.is_none() {
            let what = format!("the record {name} would never expire");
            findings.push(Finding::missing(what, "expiries", &expiry, &[]));
        }
    }
    for row in kb.tables.expiries.iter(txn)? {
        let (entry, _) = row?;
        if !is_valid_expiry(kb, txn, entry)? {
            let what = format!(
                "the expiry of {} belongs to no record",
                String::from_utf8_lossy(entry.get(8..).unwrap_or_default())
            );
            findings.push(Finding::wrong(what, "expiries", entry));
        }
    }
    check_counter(kb, txn, VERSIONS, latest, findings)
}

fn is_valid_expiry(kb: &Kb, txn: &RoTxn, entry: &[u8]) -> InternalResult<bool> {
    let Some((expires, key)) = entry.split_first_chunk::<8>().filter(|(_, key)| !key.is_empty()) else {
        return Ok(false);
    };
    let Some(checksummed) = kb.tables.state.get(txn, key)? else { return Ok(false) };
    let correct_bit_flip = correct_bit_flip(checksummed);
    let stored =
        correct_bit_flip.as_deref().and_then(|checksummed| StoredRecord::decode(checksummed, "").ok());
    Ok(stored.is_some_and(|stored| stored.expires == u64::from_be_bytes(*expires)))
}

//! The port `StateStore`.

mod scan;
mod verify;

use std::{collections::HashSet, ops::Bound, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use heed::{RoTxn, RwTxn};
use lkr_state::{Expect, Key, Op, Record, Result, Scan, ScanOrder, StateStore, Write};

use self::scan::PrefixScan;
pub(crate) use self::verify::verify;
use crate::{
    clock,
    codec::{FieldReader, damaged, strip_checksum, with_checksum},
    env::Kb,
    error::{Failure, InternalResult},
    shared::StoreShared,
};

const LONGEST_KEY: usize = 400;
const LARGEST_VALUE: usize = 1 << 20;
/// So many records are read by the calling thread. See docs/studies.md#reads-in-place.
const MAX_IN_PLACE: usize = 8;
/// The same for the records of a scan, which are neighbours: enough for what a document keeps of its failed tasks.
const MAX_SCANNED_IN_PLACE: usize = 32;
/// The expiry of records that never expire.
const NEVER: u64 = u64::MAX;
/// In place of the expiry, records that never expire begin with this in the highest byte and their version in the others. As an expiry
/// it would be half a million years away.
const VERSION_ALONE: u64 = 0xfe << 56;
/// The versions that have room beside it.
const MAX_VERSION_ALONE: u64 = (1 << 56) - 1;
/// The counter for versions. It is shared by all keys, so that a key that is created again gets a new version.
const VERSIONS: &str = "versions";

/// The records of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LmdbState {
    shared: Arc<StoreShared>,
}

impl LmdbState {
    pub(crate) const fn new(shared: Arc<StoreShared>) -> Self {
        Self { shared }
    }

    async fn read<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Kb, &RoTxn) -> InternalResult<T> + Send + 'static,
    {
        StoreShared::read(&self.shared, work).await.map_err(|failure| failure.into_state(operation))
    }
}

fn get_many(kb: &Kb, txn: &RoTxn, keys: &[Key]) -> InternalResult<Vec<Option<Record>>> {
    keys.iter().try_for_each(|key| check_key(key))?;
    let now = clock::now();
    keys.iter().map(|key| Ok(find(kb, txn, key, now)?.map(StoredRecord::into_record))).collect()
}

/// The results of some scans, which see the state of the transaction.
fn scan_many(
    kb: &Kb,
    txn: &RoTxn,
    scans: &[Scan],
    skip_damaged: bool,
) -> InternalResult<Vec<Vec<(Key, Record)>>> {
    let now = clock::now();
    let run = |Scan { prefix, after, order, limit }: &Scan| {
        let scan = PrefixScan { order: *order, limit: *limit, skip_damaged };
        scan.run(kb, txn, now, prefix, after.as_deref())
    };
    scans.iter().map(run).collect()
}

#[async_trait]
impl StateStore for LmdbState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        if keys.len() <= MAX_IN_PLACE {
            let read = self.shared.read_in_place(|kb, txn| get_many(kb, txn, keys));
            return read.map_err(|failure| failure.into_state("get_many"));
        }
        let keys = keys.to_vec();
        self.read("get_many", move |kb, txn| get_many(kb, txn, &keys)).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        let applied = async {
            check(&writes)?;
            self.shared.write(move |kb, txn| apply(kb, txn, &writes)).await
        };
        applied.await.map_err(|failure| failure.into_state("apply"))
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let scan = PrefixScan { order, limit, skip_damaged: self.shared.is_read_only() };
        if limit <= MAX_SCANNED_IN_PLACE {
            let found = self.shared.read_in_place(|kb, txn| scan.run(kb, txn, clock::now(), prefix, after));
            return found.map_err(|failure| failure.into_state("scan"));
        }
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let run = move |kb: &Kb, txn: &RoTxn| scan.run(kb, txn, clock::now(), &prefix, after.as_deref());
        self.read("scan", run).await
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let skip_damaged = self.shared.is_read_only();
        // A scan without a result costs about as much as a record.
        let cost = scans.iter().fold(0_usize, |cost, scan| cost.saturating_add(scan.limit.max(1)));
        if cost <= MAX_SCANNED_IN_PLACE {
            let found = self.shared.read_in_place(|kb, txn| scan_many(kb, txn, scans, skip_damaged));
            return found.map_err(|failure| failure.into_state("scan_many"));
        }
        let scans = scans.to_vec();
        self.read("scan_many", move |kb, txn| scan_many(kb, txn, &scans, skip_damaged)).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        StoreShared::snapshot(&self.shared, to).await.map_err(|failure| failure.into_state("snapshot"))
    }

    async fn health(&self) -> Result<()> {
        StoreShared::health(&self.shared).await.map_err(|failure| failure.into_state("health"))
    }
}

/// A record as it is stored: expiry in microseconds since 1970, version, value; or [`VERSION_ALONE`] with the version, value. Stores of
/// format 5 have the first form alone.
struct StoredRecord<'t> {
    expires: u64,
    version: u64,
    value: &'t [u8],
}

impl<'t> StoredRecord<'t> {
    fn decode(checksummed: &'t [u8], key: &str) -> InternalResult<Self> {
        let name = || format!("the record {key}");
        let mut fields = FieldReader(strip_checksum(checksummed, name)?);
        let expires = fields.u64().ok_or_else(|| damaged(name))?;
        if expires & !MAX_VERSION_ALONE == VERSION_ALONE {
            return Ok(Self { expires: NEVER, version: expires & MAX_VERSION_ALONE, value: fields.0 });
        }
        let version = fields.u64().ok_or_else(|| damaged(name))?;
        Ok(Self { expires, version, value: fields.0 })
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(16 + self.value.len());
        if self.expires == NEVER && self.version <= MAX_VERSION_ALONE {
            bytes.extend_from_slice(&(VERSION_ALONE | self.version).to_le_bytes());
        } else {
            bytes.extend_from_slice(&self.expires.to_le_bytes());
            bytes.extend_from_slice(&self.version.to_le_bytes());
        }
        bytes.extend_from_slice(self.value);
        with_checksum(&bytes)
    }

    fn into_record(self) -> Record {
        Record { value: Bytes::copy_from_slice(self.value), version: self.version }
    }
}

fn check_key(key: &str) -> InternalResult<()> {
    if (1..=LONGEST_KEY).contains(&key.len()) {
        return Ok(());
    }
    Err(Failure::invalid(format!("a key of {} bytes; 1 to {LONGEST_KEY} are possible", key.len())))
}

fn check(writes: &[Write]) -> InternalResult<()> {
    let mut keys = HashSet::with_capacity(writes.len());
    for Write { key, op, .. } in writes {
        check_key(key)?;
        if !keys.insert(key) {
            return Err(Failure::invalid(format!("the key {key} occurs twice in one step")));
        }
        if let Op::Put { value, .. } = op
            && value.len() > LARGEST_VALUE
        {
            let message = format!("a value of {} bytes for {key}; {LARGEST_VALUE} are possible", value.len());
            return Err(Failure::invalid(message));
        }
    }
    Ok(())
}

/// The record of `key`, unless it has expired.
fn find<'t>(kb: &Kb, txn: &'t RoTxn, key: &str, now: u64) -> InternalResult<Option<StoredRecord<'t>>> {
    Ok(stored(kb, txn, key)?.filter(|stored| stored.expires > now))
}

fn stored<'t>(kb: &Kb, txn: &'t RoTxn, key: &str) -> InternalResult<Option<StoredRecord<'t>>> {
    kb.tables
        .state
        .get(txn, key.as_bytes())?
        .map(|checksummed| StoredRecord::decode(checksummed, key))
        .transpose()
}

/// Checks every expectation, then writes.
fn apply(kb: &Kb, txn: &mut RwTxn, writes: &[Write]) -> InternalResult<()> {
    let now = clock::now();
    for Write { key, expect, .. } in writes {
        let version = find(kb, txn, key, now)?.map(|stored| stored.version);
        let holds = match expect {
            Expect::Any => true,
            Expect::Absent => version.is_none(),
            Expect::Version(expected) => version == Some(*expected),
        };
        if !holds {
            return Err(Failure::conflict(format!("{key} has version {version:?}, expected {expect:?}")));
        }
    }
    writes.iter().try_for_each(|Write { key, op, .. }| match op {
        Op::Put { value, ttl } => {
            let expires = ttl.map_or(NEVER, |ttl| clock::after(now, ttl));
            put(kb, txn, key, value, expires)
        }
        Op::Delete => remove(kb, txn, key),
        Op::Increment => increment(kb, txn, key, now),
        Op::Check => Ok(()),
    })
}

fn put(kb: &Kb, txn: &mut RwTxn, key: &str, value: &[u8], expires: u64) -> InternalResult<()> {
    delete_expiry(kb, txn, key)?;
    let version = kb.count(txn, VERSIONS)?;
    let record = StoredRecord { expires, version, value }.encode();
    kb.tables.state.put(txn, key.as_bytes(), &record)?;
    if expires != NEVER {
        kb.tables.expiries.put(txn, &expiry_key(expires, key.as_bytes()), &[])?;
    }
    Ok(())
}

fn remove(kb: &Kb, txn: &mut RwTxn, key: &str) -> InternalResult<()> {
    delete_expiry(kb, txn, key)?;
    kb.tables.state.delete(txn, key.as_bytes())?;
    Ok(())
}

/// Increments a counter and keeps its expiry.
fn increment(kb: &Kb, txn: &mut RwTxn, key: &str, now: u64) -> InternalResult<()> {
    let present = find(kb, txn, key, now)?;
    let expires = present.as_ref().map_or(NEVER, |stored| stored.expires);
    let count = present.map_or(0, |stored| stored.into_record().as_counter());
    put(kb, txn, key, count.saturating_add(1).to_string().as_bytes(), expires)
}

/// Removes the key from the table of expiries.
fn delete_expiry(kb: &Kb, txn: &mut RwTxn, key: &str) -> InternalResult<()> {
    let expires = stored(kb, txn, key)?.map_or(NEVER, |stored| stored.expires);
    if expires != NEVER {
        kb.tables.expiries.delete(txn, &expiry_key(expires, key.as_bytes()))?;
    }
    Ok(())
}

fn expiry_key(expires: u64, key: &[u8]) -> Vec<u8> {
    [&expires.to_be_bytes(), key].concat()
}

/// Removes up to `limit` expired records and returns how many there were.
pub(crate) fn purge(kb: &Kb, txn: &mut RwTxn, limit: usize) -> InternalResult<usize> {
    let end = clock::now().to_be_bytes();
    let range = (Bound::Unbounded, Bound::Excluded(end.as_slice()));
    let mut expired = Vec::new();
    for entry in kb.tables.expiries.range(txn, &range)?.take(limit) {
        expired.push(entry?.0.to_vec());
    }
    for entry in &expired {
        kb.tables.expiries.delete(txn, entry)?;
        if let Some((_, key)) = entry.split_first_chunk::<8>() {
            kb.tables.state.delete(txn, key)?;
        }
    }
    Ok(expired.len())
}

/// Whether an expired record has not been removed yet.
pub(crate) fn any_expired(kb: &Kb, txn: &RoTxn) -> InternalResult<bool> {
    let now = clock::now().to_be_bytes();
    Ok(kb.tables.expiries.first(txn)?.is_some_and(|(entry, _)| entry < now.as_slice()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::env::Map;

    #[test]
    fn purge_removes_expired_records_only() {
        let dir = tempfile::tempdir().unwrap();
        let kb = Kb::open(dir.path(), Map::default()).unwrap();
        let mut txn = kb.write_txn().unwrap();
        let put = |key: &str, ttl| Write::put_for(key, Expect::Any, "value", ttl);
        let long = Duration::from_secs(1_000);
        let writes = [
            put("gone", Duration::ZERO),
            put("kept", long),
            Write::put("for ever", Expect::Any, "value"),
            put("put again", Duration::ZERO),
            put("deleted", Duration::ZERO),
        ];
        apply(&kb, &mut txn, &writes).unwrap();
        apply(&kb, &mut txn, &[put("put again", long), Write::delete("deleted", Expect::Any)]).unwrap();
        txn.commit().unwrap();
        std::thread::sleep(Duration::from_millis(1));

        assert!(any_expired(&kb, &kb.snapshot().unwrap()).unwrap());
        let mut txn = kb.write_txn().unwrap();
        assert_eq!(purge(&kb, &mut txn, 100).unwrap(), 1);
        txn.commit().unwrap();
        let txn = kb.snapshot().unwrap();
        assert!(!any_expired(&kb, &txn).unwrap());
        assert_eq!((kb.tables.state.len(&txn).unwrap(), kb.tables.expiries.len(&txn).unwrap()), (3, 2));
    }

    #[test]
    fn record_of_format_5_is_read_as_it_is() {
        let payload = [&NEVER.to_le_bytes()[..], &7_u64.to_le_bytes(), b"value"].concat();
        let checksummed = with_checksum(&payload);
        let stored = StoredRecord::decode(&checksummed, "a/key").unwrap();
        assert_eq!((stored.expires, stored.version, stored.value), (NEVER, 7, &b"value"[..]));
        let short = stored.encode();
        assert_eq!(short.len(), checksummed.len() - 8);
        let again = StoredRecord::decode(&short, "a/key").unwrap();
        assert_eq!((again.expires, again.version, again.value), (NEVER, 7, &b"value"[..]));
    }

    #[test]
    fn decoded_record_is_the_encoded_one() {
        let now = clock::now();
        for expires in [0, now, MAX_VERSION_ALONE, NEVER - 1, NEVER] {
            for version in [0, 1, MAX_VERSION_ALONE, MAX_VERSION_ALONE + 1, u64::MAX] {
                for value in [&b""[..], b"value"] {
                    let encoded = StoredRecord { expires, version, value }.encode();
                    let decoded = StoredRecord::decode(&encoded, "").unwrap();
                    assert_eq!((decoded.expires, decoded.version, decoded.value), (expires, version, value));
                }
            }
        }
        for length in 0..8 {
            assert!(StoredRecord::decode(&with_checksum(&vec![0xfe; length]), "").is_err());
        }
    }

    #[test]
    fn damaged_record_error_names_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let kb = Kb::open(dir.path(), Map::default()).unwrap();
        let mut txn = kb.write_txn().unwrap();
        apply(&kb, &mut txn, &[Write::put("a/key", Expect::Any, "value")]).unwrap();
        let mut checksummed = kb.tables.state.get(&txn, b"a/key").unwrap().unwrap().to_vec();
        *checksummed.last_mut().unwrap() ^= 1;
        kb.tables.state.put(&mut txn, b"a/key", &checksummed).unwrap();
        let failure = find(&kb, &txn, "a/key", 0).err().unwrap();
        assert_eq!(failure.kind(), crate::error::FailureKind::Corrupt);
        assert_eq!(failure.to_string(), "the record a/key is damaged");
    }
}

//! Reading a consistent directory from the store.

use lkr_state::{Key, Record, ScanOrder, StateStore, StateStoreExt};

use crate::{
    Directory, Error, ErrorKind, Result,
    directory::DirectoryParts,
    records::{
        CLOSED, GROUP_MEMBERS, GROUPS, MEMBERS, SPACES, VERSION, decode_closed, decode_group,
        decode_group_member, decode_member, decode_space,
    },
};

/// The number of records that one scan reads.
const BATCH: usize = 1_000;

/// How often a directory is read again because a change happened meanwhile.
const MAX_READS: u32 = 16;

/// The version of the record that every change increments; `None` before the first change.
pub(crate) async fn version(state: &dyn StateStore) -> Result<Option<u64>> {
    Ok(state.get(VERSION).await?.map(|record| record.version))
}

/// Reads all records, again if a change happened meanwhile.
pub(crate) async fn load(state: &dyn StateStore) -> Result<Directory> {
    for _ in 0..MAX_READS {
        let before = version(state).await?;
        let parts = read(state, before).await?;
        if version(state).await? == before {
            return Ok(parts.into());
        }
    }
    let reason = format!("the records changed during each of {MAX_READS} reads");
    Err(Error::new(ErrorKind::Contention, "read spaces", reason))
}

async fn read(state: &dyn StateStore, version: Option<u64>) -> Result<DirectoryParts> {
    Ok(DirectoryParts {
        version,
        spaces: all(state, SPACES, decode_space).await?,
        closed: all(state, CLOSED, decode_closed).await?.into_iter().collect(),
        members: all(state, MEMBERS, decode_member).await?,
        groups: all(state, GROUPS, decode_group).await?,
        group_members: all(state, GROUP_MEMBERS, decode_group_member).await?,
    })
}

/// All records with a prefix.
async fn all<T>(
    state: &dyn StateStore,
    prefix: &str,
    decode: impl Fn(&str, &[u8]) -> Result<T>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    let mut after: Option<Key> = None;
    loop {
        let batch = state.scan(prefix, after.as_deref(), ScanOrder::Ascending, BATCH).await?;
        for (key, Record { value, .. }) in &batch {
            found.push(decode(key, value)?);
        }
        if batch.len() < BATCH {
            return Ok(found);
        }
        after = batch.into_iter().next_back().map(|(key, _)| key);
    }
}

//! Puts the records of a snapshot into an empty store.

use std::{path::Path, time::SystemTime};

use lkr_state::{Error, ErrorKind, Result};

use crate::{
    client::{Call, RedisClient},
    clock::whole_millis,
    dump::{DumpReader, Stored},
    error::unexpected,
    reply::Reply,
    script, state,
};

const OPERATION: &str = "restore";
/// The number of records and bytes after which a batch ends.
const BATCH: usize = 500;
const BATCH_BYTES: usize = 4 << 20;

pub(crate) async fn restore(client: &RedisClient, folder: &Path) -> Result<()> {
    let folder = folder.to_owned();
    let opened = tokio::task::spawn_blocking(move || DumpReader::open(&folder)).await;
    let opened = opened.map_err(|error| Error::new(ErrorKind::Internal, OPERATION, error))?;
    let mut dump = opened.map_err(|error| Error::io(OPERATION, error))?;
    let highest = dump.highest_version;
    store(client, "begin", highest, &[]).await?;
    loop {
        let read =
            tokio::task::spawn_blocking(move || next_batch(&mut dump).map(|batch| (dump, batch))).await;
        let read = read.map_err(|error| Error::new(ErrorKind::Internal, OPERATION, error))?;
        let (rest, batch) = read.map_err(|error| Error::io(OPERATION, error))?;
        if batch.is_empty() {
            break;
        }
        dump = rest;
        store(client, "more", highest, &batch).await?;
    }
    store(client, "end", highest, &[]).await?;
    client.note(highest);
    Ok(())
}

/// The next records, without expired ones.
fn next_batch(dump: &mut DumpReader) -> std::io::Result<Vec<Stored>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, whole_millis);
    let (mut batch, mut size) = (Vec::new(), 0);
    while batch.len() < BATCH && size < BATCH_BYTES {
        let Some((key, record)) = dump.next()? else { break };
        let is_live = state::header(&record).is_some_and(|(_, expires)| expires == 0 || expires > now);
        if is_live {
            size += record.len();
            batch.push((key, record));
        }
    }
    Ok(batch)
}

async fn store(client: &RedisClient, phase: &str, highest: u64, batch: &[Stored]) -> Result<()> {
    let (keys, highest) = (client.keys.restore(), highest.to_string());
    let mut arguments = vec![phase.as_bytes(), highest.as_bytes()];
    arguments.extend(batch.iter().flat_map(|(key, record)| [&key[..], &record[..]]));
    let call = Call { script: &script::RESTORE, keys: &keys, arguments: &arguments };
    let mut reply = Reply::new(OPERATION, client.write(OPERATION, call).await?.value)?;
    match reply.text()?.as_str() {
        "ok" => Ok(()),
        "occupied" => {
            let message = "the store in Redis has records already; a snapshot is restored into an empty one";
            Err(Error::new(ErrorKind::Invalid, OPERATION, message))
        }
        _ => unexpected(OPERATION),
    }
}

//! The file that a snapshot of the memory store is: JSON, read whole.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::state::{Inner, Stored};
use crate::{Key, Record};

const FILE: &str = "state.json";
const FORMAT: u32 = 1;

/// The stored form of everything.
#[derive(Serialize, Deserialize)]
struct Dump {
    format: u32,
    version: u64,
    records: Vec<DumpedRecord>,
}

/// The stored form of a record.
#[derive(Serialize, Deserialize)]
struct DumpedRecord {
    key: Key,
    value: Vec<u8>,
    version: u64,
    /// Milliseconds since 1970 after which it is gone.
    expires: Option<u64>,
}

/// Writes the file into the new folder `to`. A folder without the file's final name holds no snapshot.
pub(super) fn write(inner: &Inner, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let partial = to.join("state.partial");
    let mut writer = BufWriter::new(File::create_new(&partial)?);
    serde_json::to_writer(&mut writer, &dump(inner))?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    fs::rename(partial, to.join(FILE))?;
    File::open(to)?.sync_all()
}

pub(super) fn read(folder: &Path) -> io::Result<Inner> {
    let text = fs::read(folder.join(FILE))?;
    let dump: Dump =
        serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    if dump.format != FORMAT {
        let message = format!("format {} of {FILE}, of which {FORMAT} can be read", dump.format);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let (now, wall) = clocks();
    let restored = |dumped: DumpedRecord| {
        let left = |expires: u64| Duration::from_millis(expires).saturating_sub(wall);
        let expires = dumped.expires.and_then(|expires| now.checked_add(left(expires)));
        let record = Record { value: Bytes::from(dumped.value), version: dumped.version };
        (dumped.key, Stored { record, expires })
    };
    Ok(Inner { records: dump.records.into_iter().map(restored).collect(), version: dump.version })
}

/// A running clock does not outlive its process, so that a time of expiry is written by the calendar.
fn dump(inner: &Inner) -> Dump {
    let (now, wall) = clocks();
    let calendar = |at: Instant| {
        let millis = wall.saturating_add(at.saturating_duration_since(now)).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    };
    let dumped = |(key, stored): (&Key, &Stored)| DumpedRecord {
        key: key.clone(),
        value: stored.record.value.to_vec(),
        version: stored.record.version,
        expires: stored.expires.map(calendar),
    };
    Dump { format: FORMAT, version: inner.version, records: inner.records.iter().map(dumped).collect() }
}

/// The present by the running clock, and by the calendar since 1970.
fn clocks() -> (Instant, Duration) {
    (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

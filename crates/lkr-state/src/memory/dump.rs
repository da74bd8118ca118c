//! The snapshot file of the memory store: one JSON document.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write as _},
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::state::{MemoryRecord, MemoryStateRecords};
use crate::{Key, Record};

const FILE: &str = "state.json";
const FORMAT: u32 = 1;

/// The stored form of the store.
#[derive(Serialize, Deserialize)]
struct Dump {
    format: u32,
    version: u64,
    records: Vec<RecordDump>,
}

/// The stored form of a record.
#[derive(Serialize, Deserialize)]
struct RecordDump {
    key: Key,
    value: Vec<u8>,
    version: u64,
    /// The time of expiry in milliseconds since 1970.
    expires: Option<u64>,
}

/// Writes the file into the new folder `to`. The file gets its final name last, so an incomplete snapshot is never read.
pub(super) fn write(state: &MemoryStateRecords, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    let partial = to.join("state.partial");
    let mut writer = BufWriter::new(File::create_new(&partial)?);
    serde_json::to_writer(&mut writer, &dump(state))?;
    writer.flush()?;
    writer.get_ref().sync_all()?;
    fs::rename(partial, to.join(FILE))?;
    File::open(to)?.sync_all()
}

pub(super) fn read(folder: &Path) -> io::Result<MemoryStateRecords> {
    let text = fs::read(folder.join(FILE))?;
    let dump: Dump =
        serde_json::from_slice(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    if dump.format != FORMAT {
        let message = format!("unsupported format {} of {FILE}; expected {FORMAT}", dump.format);
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let (now, wall_clock) = clocks();
    let restore = |dumped: RecordDump| {
        let remaining = |expires: u64| Duration::from_millis(expires).saturating_sub(wall_clock);
        let expires = dumped.expires.and_then(|expires| now.checked_add(remaining(expires)));
        let record = Record { value: Bytes::from(dumped.value), version: dumped.version };
        (dumped.key, MemoryRecord { record, expires })
    };
    Ok(MemoryStateRecords { records: dump.records.into_iter().map(restore).collect(), version: dump.version })
}

/// Writes times of expiry in wall-clock time, because a monotonic clock is only valid within its process.
fn dump(state: &MemoryStateRecords) -> Dump {
    let (now, wall_clock) = clocks();
    let to_wall_clock = |at: Instant| {
        let millis = wall_clock.saturating_add(at.saturating_duration_since(now)).as_millis();
        u64::try_from(millis).unwrap_or(u64::MAX)
    };
    let dump_record = |(key, stored): (&Key, &MemoryRecord)| RecordDump {
        key: key.clone(),
        value: stored.record.value.to_vec(),
        version: stored.record.version,
        expires: stored.expires.map(to_wall_clock),
    };
    Dump { format: FORMAT, version: state.version, records: state.records.iter().map(dump_record).collect() }
}

/// The current time of the monotonic clock, and of the wall clock since 1970.
fn clocks() -> (Instant, Duration) {
    (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

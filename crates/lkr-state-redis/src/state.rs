//! The port `StateStore`.

use std::{collections::BTreeSet, path::Path, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use lkr_state::{
    Error, ErrorKind, Expect, Key, Op, Record, RecordExport, RecordSink, Result, Scan, ScanOrder, StateStore,
    Write,
};
use time::OffsetDateTime;

use crate::{
    client::{Call, RedisClient},
    clock::{MILLI, argument},
    error::unexpected,
    keys::Keys,
    reply::Reply,
    script, snapshot,
};

/// The maximum length of a key.
const MAX_KEY_BYTES: usize = 400;
/// The maximum length of a value: 1 MiB.
const MAX_VALUE_BYTES: usize = 1 << 20;
/// The length of the version and the expiry before a stored value.
const HEADER: usize = 16;
/// The largest number of records that one script reads, and the number of bytes after which it reads no more.
const PAGE: usize = 2_000;
const PAGE_BYTES: &str = "8388608";

/// The records of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RedisState {
    client: Arc<RedisClient>,
}

impl RedisState {
    pub(crate) const fn new(client: Arc<RedisClient>) -> Self {
        Self { client }
    }

    fn record(&self, stored: Vec<u8>) -> Result<Record> {
        let Some((version, _)) = header(&stored) else {
            return Err(Error::new(ErrorKind::Corrupt, "read", "a record in Redis is too short"));
        };
        self.client.note(version);
        Ok(Record { value: value(stored), version })
    }
}

#[async_trait]
impl StateStore for RedisState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        keys.iter().try_for_each(|key| check_key("get_many", key))?;
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        let mut arguments = vec![self.client.installation()];
        arguments.extend(keys.iter().map(String::as_bytes));
        let call = Call { script: &script::GET, keys: &self.client.keys.get(), arguments: &arguments };
        let mut reply = Reply::new("get_many", self.client.read("get_many", call).await?)?;
        let found =
            keys.iter().map(|_| reply.optional_bytes()?.map(|stored| self.record(stored)).transpose());
        found.collect()
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        check_writes(&writes)?;
        if writes.is_empty() {
            return Ok(());
        }
        let texts: Vec<[String; 2]> = writes.iter().map(numbers).collect();
        let arguments: Vec<&[u8]> =
            writes.iter().zip(&texts).flat_map(|(write, texts)| fields(write, texts)).collect();
        let (word, mut reply) = self.client.step("apply", &script::APPLY, &arguments, Keys::apply).await?;
        match word.as_str() {
            "ok" => {
                self.client.note(reply.number()?);
                Ok(())
            }
            "conflict" => Err(conflict(&writes, reply.number()?, &reply.text()?)),
            _ => unexpected("apply"),
        }
    }

    /// Pages of 2,000 records or 8 MiB are read one after another, so a longer result is not of one moment.
    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let mut found = Vec::new();
        let mut after = after.map(str::to_owned);
        while found.len() < limit {
            let Some([low, high]) = bounds(prefix, after.as_deref(), order) else { break };
            let wanted = (limit - found.len()).min(PAGE).to_string();
            let installation = self.client.installation();
            let arguments =
                [installation, &low, &high, sign(order), wanted.as_bytes(), PAGE_BYTES.as_bytes()];
            let call = Call { script: &script::SCAN, keys: &self.client.keys.scan(), arguments: &arguments };
            let mut reply = Reply::new("scan", self.client.read("scan", call).await?)?;
            let next = reply.text()?;
            let before = found.len();
            while reply.len() > 0 {
                found.push((reply.text()?, self.record(reply.bytes()?)?));
            }
            // A full page has no mark: it ends where the next one begins.
            let is_full = found.len() - before == PAGE;
            after = match next.is_empty() {
                false => Some(next),
                true if is_full => found.last().map(|(key, _)| key.clone()),
                true => break,
            };
        }
        Ok(found)
    }

    /// One script reads everything, however much it is.
    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let bounds_of = |scan: &Scan| bounds(&scan.prefix, scan.after.as_deref(), scan.order);
        let bounds: Vec<_> = scans.iter().map(bounds_of).collect();
        if bounds.iter().all(Option::is_none) {
            return Ok(vec![Vec::new(); scans.len()]);
        }
        let limits: Vec<_> = scans.iter().map(|scan| scan.limit.to_string()).collect();
        let mut arguments = vec![self.client.installation()];
        for ((scan, bounds), limit) in scans.iter().zip(&bounds).zip(&limits) {
            if let Some([low, high]) = bounds {
                arguments.extend([&low[..], high, sign(scan.order), limit.as_bytes()]);
            }
        }
        let call = Call { script: &script::SCAN_MANY, keys: &self.client.keys.scan(), arguments: &arguments };
        let mut reply = Reply::new("scan_many", self.client.read("scan_many", call).await?)?;
        let mut read = |bounds: Option<_>| {
            let count = if bounds.is_some() { reply.number()? } else { 0 };
            (0..count).map(|_| Ok((reply.text()?, self.record(reply.bytes()?)?))).collect()
        };
        bounds.into_iter().map(&mut read).collect()
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        snapshot::write(&self.client, to).await
    }

    async fn health(&self) -> Result<()> {
        self.client.health().await
    }

    fn now(&self) -> OffsetDateTime {
        self.client.clock.now()
    }
}

#[async_trait]
impl RecordExport for RedisState {
    async fn export(&self, sink: &mut dyn RecordSink) -> Result<()> {
        snapshot::export(&self.client, sink).await
    }
}

/// The value of a stored record, which has a [`header`].
pub(crate) fn value(mut stored: Vec<u8>) -> Bytes {
    // `Bytes` would keep the spare capacity.
    stored.shrink_to_fit();
    Bytes::from(stored).slice(HEADER..)
}

/// The version and the expiry of a stored record.
pub(crate) fn header(stored: &[u8]) -> Option<(u64, u64)> {
    let (version, rest) = stored.split_first_chunk::<8>()?;
    let (expires, _) = rest.split_first_chunk::<8>()?;
    Some((u64::from_be_bytes(*version), u64::from_be_bytes(*expires)))
}

/// The bounds of a scan in the notation of ZRANGEBYLEX; `None` if nothing is between them. No key has the byte 255.
fn bounds(prefix: &str, after: Option<&str>, order: ScanOrder) -> Option<[Vec<u8>; 2]> {
    let with = |mark: u8, key: &str, end: &[u8]| [&[mark], key.as_bytes(), end].concat();
    let (mut low, mut high) = (with(b'[', prefix, b""), with(b'(', prefix, b"\xff"));
    match (order, after) {
        (ScanOrder::Ascending, Some(after)) if after >= prefix => low = with(b'(', after, b""),
        (ScanOrder::Descending, Some(after)) if after <= prefix => return None,
        (ScanOrder::Descending, Some(after)) if after.starts_with(prefix) => high = with(b'(', after, b""),
        _ => {}
    }
    Some([low, high])
}

/// The order of a scan, as an argument of the script.
const fn sign(order: ScanOrder) -> &'static [u8] {
    match order {
        ScanOrder::Ascending => b"+",
        ScanOrder::Descending => b"-",
    }
}

/// The expectation and the time to live of a write, as arguments of the script.
fn numbers(write: &Write) -> [String; 2] {
    let expect = match write.expect {
        Expect::Any => "*".to_owned(),
        Expect::Absent => "-".to_owned(),
        Expect::Version(version) => version.to_string(),
    };
    let ttl = match &write.op {
        Op::Put { ttl: Some(ttl), .. } => argument(*ttl, MILLI),
        _ => "-".to_owned(),
    };
    [expect, ttl]
}

fn fields<'a>(write: &'a Write, [expect, ttl]: &'a [String; 2]) -> [&'a [u8]; 5] {
    let (op, value): (&str, &[u8]) = match &write.op {
        Op::Put { value, .. } => ("put", value),
        Op::Delete => ("delete", b""),
        Op::Increment => ("increment", b""),
        Op::Check => ("check", b""),
    };
    [write.key.as_bytes(), expect.as_bytes(), op.as_bytes(), value, ttl.as_bytes()]
}

fn conflict(writes: &[Write], number: u64, found: &str) -> Error {
    let index = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
    let message = match index.and_then(|index| writes.get(index)) {
        Some(write) => format!("{}: expected {:?}, found version {found}", write.key, write.expect),
        None => "an expectation does not hold".to_owned(),
    };
    Error::new(ErrorKind::Conflict, "apply", message)
}

fn check_writes(writes: &[Write]) -> Result<()> {
    let mut keys = BTreeSet::new();
    for write in writes {
        check_key("apply", &write.key)?;
        if !keys.insert(write.key.as_str()) {
            return Err(invalid("apply", format!("the step contains the key {} twice", write.key)));
        }
        if let Op::Put { value, .. } = &write.op
            && value.len() > MAX_VALUE_BYTES
        {
            let (key, len) = (&write.key, value.len());
            let message =
                format!("the value of {key} has {len} bytes; at most {MAX_VALUE_BYTES} are allowed");
            return Err(invalid("apply", message));
        }
    }
    Ok(())
}

fn check_key(operation: &'static str, key: &str) -> Result<()> {
    if (1..=MAX_KEY_BYTES).contains(&key.len()) {
        return Ok(());
    }
    let message = format!("the key has {} bytes; 1 to {MAX_KEY_BYTES} are allowed", key.len());
    Err(invalid(operation, message))
}

fn invalid(operation: &'static str, message: String) -> Error {
    Error::new(ErrorKind::Invalid, operation, message)
}

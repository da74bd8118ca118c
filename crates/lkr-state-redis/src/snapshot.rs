//! Consistent copies while writes go on.
//!
//! A snapshot registers in the server with the highest version so far. From then on, `apply` keeps the old record of each
//! key that it changes, if the record is not newer than that. The reader pages through the keys and takes the records that
//! are not newer, and then the kept ones: a record that the first pass missed was changed before the pass reached it, and
//! so was kept before the second pass began. The registration ends by itself if its reader does not renew it.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use lkr_state::{Error, ErrorKind, Key, RecordSink, Result};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    client::{Call, RedisClient},
    dump::{DumpWriter, Stored},
    error::unexpected,
    reply::Reply,
    script::{self, Script},
    state,
};

const OPERATION: &str = "snapshot";
const EXPORT: &str = "export";
/// How long a snapshot stays registered after each page, in milliseconds.
const LEASE: &str = "60000";
/// The number of bytes after which a page ends.
const PAGE_BYTES: &str = "4194304";
/// The number of pages that wait to be written.
const WAITING_PAGES: usize = 2;

/// Writes a copy of all records into the new folder `to`. It runs to its end even if this future is dropped.
pub(crate) async fn write(client: &Arc<RedisClient>, to: &Path) -> Result<()> {
    let (client, to) = (Arc::clone(client), to.to_owned());
    let copying = tokio::spawn(async move { copy(&client, to).await });
    copying.await.map_err(|error| Error::new(ErrorKind::Internal, OPERATION, error))?
}

/// Makes the folder and fills it. If that fails, the folder is removed, so that the same call can succeed later.
async fn copy(client: &RedisClient, to: PathBuf) -> Result<()> {
    let folder = to.clone();
    let dump = joined(tokio::task::spawn_blocking(move || DumpWriter::create(&folder)).await)?;
    let copied = fill(client, dump).await;
    if copied.is_err() {
        let removed = joined(tokio::task::spawn_blocking(move || fs::remove_dir_all(to)).await);
        if let Err(error) = removed {
            tracing::warn!(%error, "folder of a failed snapshot could not be removed");
        }
    }
    copied
}

async fn fill(client: &RedisClient, dump: DumpWriter) -> Result<()> {
    let reader = Reader::open(client).await?;
    let (pages, waiting) = mpsc::channel(WAITING_PAGES);
    let highest = reader.highest;
    let writing = tokio::task::spawn_blocking(move || write_pages(dump, waiting, highest));
    let read = reader.read_all(&pages).await;
    // Without this message, the file does not get its final name.
    if read.is_ok() {
        let _writer_failed = pages.send(Page::End).await;
    }
    drop(pages);
    let written = joined(writing.await);
    reader.close().await;
    // A failure of the writer is why the reader could not go on.
    written.and(read)
}

/// Gives the records of one moment to `sink`. If this future is dropped, the registration ends by itself.
pub(crate) async fn export(client: &RedisClient, sink: &mut dyn RecordSink) -> Result<()> {
    let reader = Reader::open(client).await?;
    let (pages, waiting) = mpsc::channel(WAITING_PAGES);
    let reading = async {
        let pages = pages;
        reader.read_all(&pages).await
    };
    let adding = async {
        let mut waiting = waiting;
        while let Some(Page::Records(records)) = waiting.recv().await {
            sink.add(live_records(client, records)?).await?;
        }
        Ok(())
    };
    let (read, added) = tokio::join!(reading, adding);
    reader.close().await;
    // A failure of the sink is why the reader could not go on.
    added.and(read)
}

/// The keys and values of the records that have not expired.
fn live_records(client: &RedisClient, records: Vec<Stored>) -> Result<Vec<(Key, Bytes)>> {
    let now = client.clock.now().unix_timestamp_nanos() / 1_000_000;
    let damaged =
        |what: &str| Error::new(ErrorKind::Corrupt, EXPORT, format!("a {what} in Redis is not valid"));
    let mut live = Vec::with_capacity(records.len());
    for (key, stored) in records {
        let (_, expires) = state::header(&stored).ok_or_else(|| damaged("record"))?;
        if expires == 0 || i128::from(expires) > now {
            let key = String::from_utf8(key).map_err(|_| damaged("key"))?;
            live.push((key, state::value(stored)));
        }
    }
    Ok(live)
}

/// Records that were read, or the end of them.
enum Page {
    Records(Vec<Stored>),
    End,
}

fn write_pages(mut dump: DumpWriter, mut pages: mpsc::Receiver<Page>, highest: u64) -> io::Result<()> {
    while let Some(page) = pages.blocking_recv() {
        match page {
            Page::Records(records) => records.iter().try_for_each(|record| dump.write(record))?,
            Page::End => return dump.finish(highest),
        }
    }
    Ok(())
}

/// A registered snapshot.
struct Reader<'a> {
    client: &'a RedisClient,
    id: Uuid,
    place: usize,
    highest: u64,
}

impl<'a> Reader<'a> {
    async fn open(client: &'a RedisClient) -> Result<Self> {
        let id = Uuid::new_v4();
        let (keys, arguments) =
            (client.keys.snapshot_open(), [client.installation(), id.as_bytes(), LEASE.as_bytes()]);
        let call = Call { script: &script::SNAPSHOT_OPEN, keys: &keys, arguments: &arguments };
        let mut reply = Reply::new(OPERATION, client.write(OPERATION, call).await?.value)?;
        match reply.text()?.as_str() {
            "ok" => {
                let place = usize::try_from(reply.number()?).or_else(|_| unexpected(OPERATION))?;
                Ok(Self { client, id, place, highest: reply.number()? })
            }
            _ => Err(Error::new(ErrorKind::Unavailable, OPERATION, "too many snapshots are being written")),
        }
    }

    async fn read_all(&self, pages: &mpsc::Sender<Page>) -> Result<()> {
        let mut after = Vec::new();
        loop {
            let keys = self.client.keys.snapshot_page();
            let (next, records) =
                self.page(&script::SNAPSHOT_PAGE, &keys, &[&after, PAGE_BYTES.as_bytes()]).await?;
            hand_on(pages, records).await?;
            if next.is_empty() {
                break;
            }
            after = next;
        }
        let mut cursor = b"0".to_vec();
        loop {
            let keys = self.client.keys.snapshot_kept(self.place);
            let (next, records) = self.page(&script::SNAPSHOT_KEPT, &keys, &[&cursor]).await?;
            hand_on(pages, records).await?;
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    /// The place where the next page begins, and the records of this one.
    async fn page(
        &self,
        script: &'static Script,
        keys: &[String],
        arguments: &[&[u8]],
    ) -> Result<(Vec<u8>, Vec<Stored>)> {
        let place = self.place.to_string();
        let arguments = [&[place.as_bytes(), self.id.as_bytes(), LEASE.as_bytes()], arguments].concat();
        let answer = self.client.write(OPERATION, Call { script, keys, arguments: &arguments }).await?;
        let mut reply = Reply::new(OPERATION, answer.value)?;
        if reply.text()? != "ok" {
            let message = "the snapshot took too long between two pages, and its old records were removed";
            return Err(Error::new(ErrorKind::Unavailable, OPERATION, message));
        }
        let next = reply.bytes()?;
        let mut records = Vec::new();
        while reply.len() > 0 {
            records.push((reply.bytes()?, reply.bytes()?));
        }
        Ok((next, records))
    }

    /// Ends the registration, which otherwise ends by itself.
    async fn close(&self) {
        let (place, keys) = (self.place.to_string(), self.client.keys.snapshot_kept(self.place));
        let arguments = [place.as_bytes(), self.id.as_bytes()];
        let call = Call { script: &script::SNAPSHOT_CLOSE, keys: &keys, arguments: &arguments };
        if let Err(error) = self.client.write(OPERATION, call).await {
            tracing::warn!(%error, "cannot close a snapshot; Redis keeps its old records for a minute");
        }
    }
}

async fn hand_on(pages: &mpsc::Sender<Page>, records: Vec<Stored>) -> Result<()> {
    let sent = pages.send(Page::Records(records)).await;
    sent.map_err(|_| Error::new(ErrorKind::Internal, OPERATION, "writing the snapshot failed"))
}

/// The result of a blocking task.
fn joined<T>(done: Result<io::Result<T>, tokio::task::JoinError>) -> Result<T> {
    let done = done.map_err(|error| Error::new(ErrorKind::Internal, OPERATION, error))?;
    done.map_err(|error| Error::io(OPERATION, error))
}

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio_tar::{Archive, Entries};

use crate::{
    ArchiveInfo, Error, ErrorKind, Result,
    checksums::{ChecksumList, INFO_PATH, is_checksum_list, is_entry_path},
    error::{READ, damaged, read_error},
    hashing_reader::HashingReader,
    header_limit::{HeaderLimit, LimitedReader},
};

/// The maximum length of the description and of a checksum list.
const MAX_METADATA_BYTES: u64 = 4 * 1024 * 1024;

/// Reads and verifies an archive.
pub struct ArchiveReader<R: AsyncRead + Unpin> {
    entries: Entries<LimitedReader<R>>,
    limit: HeaderLimit,
    info: ArchiveInfo,
    checksums: ChecksumList,
    current: Option<CurrentEntry<R>>,
    finished: bool,
}

/// An entry of an archive. Reading it yields its content.
#[derive(Debug)]
pub struct Entry<'a, R: AsyncRead + Unpin> {
    current: &'a mut CurrentEntry<R>,
}

struct CurrentEntry<R: AsyncRead + Unpin> {
    path: String,
    length: u64,
    content: HashingReader<tokio_tar::Entry<Archive<LimitedReader<R>>>>,
}

impl<R: AsyncRead + Unpin> std::fmt::Debug for ArchiveReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { info, checksums, finished, .. } = self;
        let mut debug = f.debug_struct("ArchiveReader");
        debug.field("info", info).field("sums", checksums).field("finished", finished).finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> std::fmt::Debug for CurrentEntry<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("path", &self.path)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> ArchiveReader<R> {
    /// Opens an archive and reads its description.
    ///
    /// # Errors
    /// `NotAnArchive` if the data is not an archive of this format, `UnsupportedVersion` if a later version created it.
    pub async fn open(from: R) -> Result<Self> {
        let not_an_archive =
            || Error::new(ErrorKind::NotAnArchive, READ, "the data does not begin like a backup");
        let (from, limit) = LimitedReader::new(from);
        let mut entries = Archive::new(from).entries().map_err(read_error)?;
        let mut first = match next_entry(&mut entries, &limit).await {
            Ok(Some(first)) if first.path == INFO_PATH => first,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            _ => return Err(not_an_archive()),
        };
        let json = first.read_metadata().await?;
        let info = ArchiveInfo::decode(json.as_bytes())?;
        let mut checksums = ChecksumList::default();
        first.finish(&mut checksums)?;
        Ok(Self { entries, limit, info, checksums, current: None, finished: false })
    }

    /// The description of the archive.
    pub const fn info(&self) -> &ArchiveInfo {
        &self.info
    }

    /// The next entry; `None` at the end. Skips what was not read of the previous entry.
    ///
    /// # Errors
    /// `Damaged` if entries since the previous checksum list do not match their checksums. When this returns `None`,
    /// all entries matched.
    pub async fn next(&mut self) -> Result<Option<Entry<'_, R>>> {
        if let Some(mut current) = self.current.take() {
            tokio::io::copy(&mut current.content, &mut tokio::io::sink()).await.map_err(read_error)?;
            current.finish(&mut self.checksums)?;
        }
        loop {
            let mut next = match next_entry(&mut self.entries, &self.limit).await? {
                Some(next) if !self.finished => next,
                None if self.finished => return Ok(None),
                None => return Err(damaged("the archive is incomplete")),
                Some(next) => {
                    return Err(damaged(format!("the archive has an entry after its end: {}", next.path)));
                }
            };
            if is_checksum_list(&next.path) {
                let list = next.read_metadata().await?;
                self.finished = self.checksums.verify_list(&next.path, &list)?;
            } else if self.checksums.is_full() {
                return Err(damaged(format!("the checksum list before {} is missing", next.path)));
            } else if is_entry_path(&next.path) {
                return Ok(Some(Entry { current: self.current.insert(next) }));
            } else {
                return Err(damaged(format!("invalid entry path {:?}", next.path)));
            }
        }
    }

    /// Reads the remaining entries and verifies the archive.
    ///
    /// # Errors
    /// `Damaged` if it is damaged.
    pub async fn verify(mut self) -> Result<()> {
        while self.next().await?.is_some() {}
        Ok(())
    }
}

/// The next entry of the tar file, metadata included.
async fn next_entry<R: AsyncRead + Unpin>(
    entries: &mut Entries<LimitedReader<R>>,
    limit: &HeaderLimit,
) -> Result<Option<CurrentEntry<R>>> {
    limit.begin_header();
    let Some(entry) = entries.next().await else { return Ok(None) };
    let entry = entry.map_err(read_error)?;
    let path = String::from_utf8_lossy(&entry.path_bytes().map_err(read_error)?).into_owned();
    if !entry.header().entry_type().is_file() {
        return Err(damaged(format!("{path:?} is not a regular file")));
    }
    let length = entry.effective_size();
    limit.begin_content();
    Ok(Some(CurrentEntry { path, length, content: HashingReader::new(entry) }))
}

impl<R: AsyncRead + Unpin> CurrentEntry<R> {
    /// The content of a description or a checksum list.
    async fn read_metadata(&mut self) -> Result<String> {
        if self.length > MAX_METADATA_BYTES {
            return Err(damaged(format!("{} is too long: {} bytes", self.path, self.length)));
        }
        let mut text = String::new();
        self.content.read_to_string(&mut text).await.map_err(read_error)?;
        Ok(text)
    }

    fn finish(self, checksums: &mut ChecksumList) -> Result<()> {
        let (length, sha256) = self.content.finish();
        if length != self.length {
            return Err(damaged(format!("{} is truncated: {length} of {} bytes", self.path, self.length)));
        }
        checksums.add(&self.path, &sha256);
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> Entry<'_, R> {
    /// Its path: relative, with `/` as separator.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.current.path
    }

    /// The length of its content in bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.current.length
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Entry<'_, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.current.content).poll_read(cx, buffer)
    }
}

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};
use tokio_tar::{Archive, Entries};

use crate::{
    About, Error, ErrorKind, Result,
    error::{READ, damaged, while_reading},
    hashed::Hashed,
    sums::{ABOUT, Sums, is_list, is_path},
};

/// What the archive says of itself, and a list of checksums, are no longer than this.
const LONGEST_OWN: u64 = 4 * 1024 * 1024;

/// Reads an archive.
pub struct ArchiveReader<R: AsyncRead + Unpin> {
    entries: Entries<R>,
    about: About,
    sums: Sums,
    current: Option<Current<R>>,
    finished: bool,
}

/// An entry, and its content.
#[derive(Debug)]
pub struct Entry<'a, R: AsyncRead + Unpin> {
    current: &'a mut Current<R>,
}

struct Current<R: AsyncRead + Unpin> {
    path: String,
    length: u64,
    content: Hashed<tokio_tar::Entry<Archive<R>>>,
}

impl<R: AsyncRead + Unpin> std::fmt::Debug for ArchiveReader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { about, sums, finished, .. } = self;
        let mut shown = f.debug_struct("ArchiveReader");
        shown.field("about", about).field("sums", sums).field("finished", finished).finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> std::fmt::Debug for Current<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("path", &self.path)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> ArchiveReader<R> {
    /// Begins to read.
    ///
    /// # Errors
    /// `Foreign` where it is no archive of this kind, `Newer` where it has a form of a later version.
    pub async fn open(from: R) -> Result<Self> {
        let foreign = || Error::new(ErrorKind::Foreign, READ, "it does not begin as a backup does");
        let mut entries = Archive::new(from).entries().map_err(while_reading)?;
        let mut first = match next_of(&mut entries).await {
            Ok(Some(first)) if first.path == ABOUT => first,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            _ => return Err(foreign()),
        };
        let json = first.read_own().await?;
        let about = About::decode(json.as_bytes())?;
        let mut sums = Sums::default();
        first.finish(&mut sums)?;
        Ok(Self { entries, about, sums, current: None, finished: false })
    }

    /// What the archive says of itself.
    pub const fn about(&self) -> &About {
        &self.about
    }

    /// The next entry; `None` at the end. What was not read of the one before is passed over.
    ///
    /// # Errors
    /// `Damaged` where what was read since the last list of checksums is not what was written. At the end, that is
    /// said of all.
    pub async fn next(&mut self) -> Result<Option<Entry<'_, R>>> {
        if let Some(mut current) = self.current.take() {
            tokio::io::copy(&mut current.content, &mut tokio::io::sink()).await.map_err(while_reading)?;
            current.finish(&mut self.sums)?;
        }
        loop {
            let mut next = match next_of(&mut self.entries).await? {
                Some(next) if !self.finished => next,
                None if self.finished => return Ok(None),
                None => return Err(damaged("it ends before its end")),
                Some(next) => return Err(damaged(format!("{} comes behind its end", next.path))),
            };
            if is_list(&next.path) {
                let list = next.read_own().await?;
                self.finished = self.sums.check(&next.path, &list)?;
            } else if is_path(&next.path) {
                return Ok(Some(Entry { current: self.current.insert(next) }));
            } else {
                return Err(damaged(format!("{:?} is no path of an entry", next.path)));
            }
        }
    }

    /// Reads what is left, and says whether all is as it was written.
    ///
    /// # Errors
    /// `Damaged` where it is not.
    pub async fn verify(mut self) -> Result<()> {
        while self.next().await?.is_some() {}
        Ok(())
    }
}

/// The next entry of the archive, whatever it is for.
async fn next_of<R: AsyncRead + Unpin>(entries: &mut Entries<R>) -> Result<Option<Current<R>>> {
    let Some(entry) = entries.next().await else { return Ok(None) };
    let entry = entry.map_err(while_reading)?;
    let path = String::from_utf8_lossy(&entry.path_bytes().map_err(while_reading)?).into_owned();
    if !entry.header().entry_type().is_file() {
        return Err(damaged(format!("{path:?} is no file")));
    }
    let length = entry.effective_size();
    Ok(Some(Current { path, length, content: Hashed::new(entry) }))
}

impl<R: AsyncRead + Unpin> Current<R> {
    /// The whole content of an entry of the archive's own.
    async fn read_own(&mut self) -> Result<String> {
        if self.length > LONGEST_OWN {
            return Err(damaged(format!("{} says that it has {} bytes", self.path, self.length)));
        }
        let mut text = String::new();
        self.content.read_to_string(&mut text).await.map_err(while_reading)?;
        Ok(text)
    }

    fn finish(self, sums: &mut Sums) -> Result<()> {
        let (length, sha256) = self.content.finish();
        if length != self.length {
            return Err(damaged(format!("{} ends after {length} of {} bytes", self.path, self.length)));
        }
        sums.add(&self.path, &sha256);
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> Entry<'_, R> {
    /// Its path: relative, of plain names set apart by `/`.
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

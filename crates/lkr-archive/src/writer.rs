use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tar::{Builder, Header};

use crate::{
    About, Error, ErrorKind, Result,
    error::{WRITE, while_writing},
    hashed::Hashed,
    sums::{ABOUT, Sums, is_path},
};

/// Writes an archive. One that is not [finished](Self::finish) is refused by readers.
pub struct ArchiveWriter<W: AsyncWrite + Unpin + Send> {
    tar: Builder<W>,
    sums: Sums,
    written_at: u64,
}

impl<W: AsyncWrite + Unpin + Send> std::fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveWriter").field("sums", &self.sums).finish_non_exhaustive()
    }
}

impl<W: AsyncWrite + Unpin + Send> ArchiveWriter<W> {
    /// Begins an archive.
    pub async fn begin(to: W, about: &About) -> Result<Self> {
        let written_at = u64::try_from(about.made_at.unix_timestamp()).unwrap_or_default();
        let mut writer = Self { tar: Builder::new_non_terminated(to), sums: Sums::default(), written_at };
        let json = about.encode()?;
        writer.append(ABOUT, json.len() as u64, json.as_slice()).await?;
        Ok(writer)
    }

    /// Adds an entry: `path` is relative, its names set apart by `/`; `length` is its length in bytes.
    ///
    /// # Errors
    /// `Invalid` where the path is none, or the content is shorter or longer. What was written is of no use then.
    pub async fn add(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        if !is_path(path) {
            return Err(Error::new(ErrorKind::Invalid, WRITE, format!("{path:?} is no path of an entry")));
        }
        self.append(path, length, content).await?;
        if self.sums.is_full() { self.list(false).await } else { Ok(()) }
    }

    /// Ends the archive, and answers what it was written to.
    pub async fn finish(mut self) -> Result<W> {
        self.list(true).await?;
        self.tar.finish().await.map_err(while_writing)?;
        let mut to = self.tar.into_inner().await.map_err(while_writing)?;
        to.flush().await.map_err(while_writing)?;
        Ok(to)
    }

    async fn append(&mut self, path: &str, length: u64, mut content: impl AsyncRead + Unpin) -> Result<()> {
        let mut hashed = Hashed::new((&mut content).take(length));
        self.append_raw(path, length, &mut hashed).await?;
        let (read, sha256) = hashed.finish();
        let more = content.read(&mut [0]).await.map_err(while_writing)?;
        if read != length || more > 0 {
            let reason = format!("{path} has not the {length} bytes that it should have");
            return Err(Error::new(ErrorKind::Invalid, WRITE, reason));
        }
        self.sums.add(path, &sha256);
        Ok(())
    }

    async fn list(&mut self, last: bool) -> Result<()> {
        let (path, list) = self.sums.take(last);
        self.append_raw(&path, list.len() as u64, list.as_bytes()).await
    }

    async fn append_raw(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o600);
        header.set_mtime(self.written_at);
        self.tar.append_data(&mut header, path, content).await.map_err(while_writing)
    }
}

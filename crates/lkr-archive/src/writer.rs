use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tar::{Builder, Header};

use crate::{
    ArchiveInfo, Error, ErrorKind, Result,
    checksums::{ChecksumList, INFO_PATH, is_entry_path},
    error::{WRITE, write_error},
    hashing_reader::HashingReader,
};

/// Writes an archive. Readers refuse an archive that was not [finished](Self::finish).
pub struct ArchiveWriter<W: AsyncWrite + Unpin + Send> {
    tar: Builder<W>,
    checksums: ChecksumList,
    modified_at: u64,
}

impl<W: AsyncWrite + Unpin + Send> std::fmt::Debug for ArchiveWriter<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveWriter").field("sums", &self.checksums).finish_non_exhaustive()
    }
}

impl<W: AsyncWrite + Unpin + Send> ArchiveWriter<W> {
    /// Begins an archive.
    pub async fn begin(to: W, info: &ArchiveInfo) -> Result<Self> {
        let modified_at = u64::try_from(info.created_at.unix_timestamp()).unwrap_or_default();
        let mut writer =
            Self { tar: Builder::new_non_terminated(to), checksums: ChecksumList::default(), modified_at };
        let json = info.encode()?;
        writer.append(INFO_PATH, json.len() as u64, json.as_slice()).await?;
        Ok(writer)
    }

    /// Adds an entry. `path` is relative, with `/` as separator; `length` is the length of the content in bytes.
    ///
    /// # Errors
    /// `Invalid` if the path is invalid or the content has another length. The archive is unusable then.
    pub async fn add(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        if !is_entry_path(path) {
            return Err(Error::new(ErrorKind::Invalid, WRITE, format!("invalid entry path {path:?}")));
        }
        self.append(path, length, content).await?;
        if self.checksums.is_full() { self.write_list(false).await } else { Ok(()) }
    }

    /// Completes the archive and returns the writer below.
    pub async fn finish(mut self) -> Result<W> {
        self.write_list(true).await?;
        self.tar.finish().await.map_err(write_error)?;
        let mut to = self.tar.into_inner().await.map_err(write_error)?;
        to.flush().await.map_err(write_error)?;
        Ok(to)
    }

    async fn append(&mut self, path: &str, length: u64, mut content: impl AsyncRead + Unpin) -> Result<()> {
        let mut reader = HashingReader::new((&mut content).take(length));
        self.append_raw(path, length, &mut reader).await?;
        let (read, sha256) = reader.finish();
        let excess = content.read(&mut [0]).await.map_err(write_error)?;
        if read != length || excess > 0 {
            let reason = format!("the content of {path} is not {length} bytes long");
            return Err(Error::new(ErrorKind::Invalid, WRITE, reason));
        }
        self.checksums.add(path, &sha256);
        Ok(())
    }

    async fn write_list(&mut self, last: bool) -> Result<()> {
        let (path, list) = self.checksums.take_list(last);
        self.append_raw(&path, list.len() as u64, list.as_bytes()).await
    }

    async fn append_raw(&mut self, path: &str, length: u64, content: impl AsyncRead + Unpin) -> Result<()> {
        let mut header = Header::new_gnu();
        header.set_size(length);
        header.set_mode(0o600);
        header.set_mtime(self.modified_at);
        self.tar.append_data(&mut header, path, content).await.map_err(write_error)
    }
}

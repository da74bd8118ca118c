//! Verifies what is read from a blob store, because blobs carry no checksums of their own.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use lkr_domain::hex;
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// Checks bytes against their recorded SHA-256. Without one, all bytes pass.
pub(crate) fn check(bytes: &[u8], sha256: Option<&str>, name: impl FnOnce() -> String) -> Result<()> {
    match sha256 {
        Some(sha256) if hex(&Sha256::digest(bytes)) != sha256 => Err(damaged(&name())),
        _ => Ok(()),
    }
}

pub(crate) fn damaged(name: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "read blob", format!("{name} is damaged"))
}

/// A blob that is being read.
struct VerifiedRead<S> {
    parts: S,
    hasher: Sha256,
    /// The last part that arrived. It is yielded once another one follows or the digest matches.
    last: Option<Bytes>,
}

/// Yields the parts as they arrive. If their SHA-256 is wrong, the stream ends with an error in place of the last part,
/// so that nobody takes a damaged blob for complete.
pub(crate) fn parts(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
    sha256: Option<String>,
    name: String,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let reading = VerifiedRead { parts, hasher: Sha256::new(), last: None };
    stream::unfold(Some(reading), move |reading| {
        let (sha256, name) = (sha256.clone(), name.clone());
        async move {
            let mut reading = reading?;
            loop {
                match reading.parts.next().await {
                    Some(Ok(part)) => {
                        reading.hasher.update(&part);
                        if let Some(before) = reading.last.replace(part) {
                            return Some((Ok(before), Some(reading)));
                        }
                    }
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => {
                        let found = hex(&reading.hasher.finalize());
                        let is_valid = sha256.is_none_or(|sha256| sha256 == found);
                        let last = reading.last.filter(|_| is_valid);
                        if !is_valid {
                            tracing::error!(blob = %name, "stored blob is damaged; stream aborted");
                            return Some((Err(io::Error::other(damaged(&name))), None));
                        }
                        return last.map(|last| (Ok(last), None));
                    }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    async fn read(bytes: &[u8], sha256: &str) -> (Vec<u8>, bool) {
        let sent =
            stream::iter(bytes.chunks(3).map(|part| Ok(Bytes::copy_from_slice(part))).collect::<Vec<_>>());
        let mut got = Vec::new();
        let all = parts(sent, Some(sha256.to_owned()), "the blob".to_owned());
        let ended = all.try_for_each(|part| {
            got.extend_from_slice(&part);
            async { Ok(()) }
        });
        let right = ended.await.is_ok();
        (got, right)
    }

    #[tokio::test]
    async fn damaged_blob_never_yields_its_last_part() {
        for length in 0..20 {
            let bytes: Vec<u8> = (0..length).collect();
            let sha256 = hex(&Sha256::digest(&bytes));
            assert_eq!(read(&bytes, &sha256).await, (bytes.clone(), true));
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1;
                let (got, right) = read(&flipped, &sha256).await;
                assert!(!right && got.len() < bytes.len());
            }
            assert!(!read(bytes.get(1..).unwrap_or(b"x"), &sha256).await.1);
        }
    }
}

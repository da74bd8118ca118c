//! What is read from a blob store, held against what was written: blobs carry no checksums of their own.

use std::io;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use lkr_domain::hex;
use sha2::{Digest, Sha256};

use crate::{Error, ErrorKind, Result};

/// Refuses bytes that are not those of which the SHA-256 was noted; where none was, nothing is known of them.
pub(crate) fn check(bytes: &[u8], sha256: Option<&str>, what: impl FnOnce() -> String) -> Result<()> {
    match sha256 {
        Some(sha256) if hex(&Sha256::digest(bytes)) != sha256 => Err(damaged(&what())),
        _ => Ok(()),
    }
}

pub(crate) fn damaged(what: &str) -> Error {
    Error::new(ErrorKind::Corrupt, "read blob", format!("{what} is damaged"))
}

/// A blob on its way.
struct Reading<S> {
    parts: S,
    hasher: Sha256,
    /// The last part that came. It is handed out when it is known that another one follows, or that all were right.
    held: Option<Bytes>,
}

/// The parts as they come, but that they end with an error where they are not those of which the SHA-256 was noted:
/// then the last one is never handed out, so that nobody takes what is wrong for the whole.
pub(crate) fn parts(
    parts: impl Stream<Item = io::Result<Bytes>> + Send + Unpin,
    sha256: Option<String>,
    what: String,
) -> impl Stream<Item = io::Result<Bytes>> + Send {
    let reading = Reading { parts, hasher: Sha256::new(), held: None };
    stream::unfold(Some(reading), move |reading| {
        let (sha256, what) = (sha256.clone(), what.clone());
        async move {
            let mut reading = reading?;
            loop {
                match reading.parts.next().await {
                    Some(Ok(part)) => {
                        reading.hasher.update(&part);
                        if let Some(before) = reading.held.replace(part) {
                            return Some((Ok(before), Some(reading)));
                        }
                    }
                    Some(Err(error)) => return Some((Err(error), None)),
                    None => {
                        let found = hex(&reading.hasher.finalize());
                        let right = sha256.is_none_or(|sha256| sha256 == found);
                        let last = reading.held.filter(|_| right);
                        if !right {
                            tracing::error!(%what, "what was stored is damaged");
                            return Some((Err(io::Error::other(damaged(&what))), None));
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
        let all = parts(sent, Some(sha256.to_owned()), "it".to_owned());
        let ended = all.try_for_each(|part| {
            got.extend_from_slice(&part);
            async { Ok(()) }
        });
        let right = ended.await.is_ok();
        (got, right)
    }

    #[tokio::test]
    async fn what_is_wrong_never_ends_well() {
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

//! The files of a folder with their digests. Only files that are not known are read.

use std::{
    io,
    path::Path,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{
    Digest, Event, IssueKind, Observer, Result,
    checked_file::open_regular,
    error::stopped,
    path,
    plan::{Content, LocalFile},
    state::{Stamp, State},
    walk::{Walked, stamp},
};

/// A file that was changed this short a time before it was read may have been changed again without a new time: file
/// systems count in steps of up to two seconds (FAT).
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// Computes the digests that the state does not know, and returns how many.
pub(crate) fn read_changed(
    root: &Path,
    walked: &mut Walked,
    state: &mut State,
    observer: &dyn Observer,
) -> Result<usize> {
    let files = std::mem::take(&mut walked.files);
    let (known, unknown): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, stamp)| {
        state.get(path).is_some_and(|entry| entry.settled && entry.stamp == *stamp)
    });
    let bytes = unknown.iter().map(|(_, stamp)| stamp.size).sum();
    let (files, to_hash) = (known.len() + unknown.len(), unknown.len());
    observer.event(&Event::Walked { files, to_hash, bytes });
    walked.files = known;
    for (path, _) in unknown {
        if observer.is_stopped() {
            return Err(stopped());
        }
        match read(&path::below(root, &path)) {
            Ok(read) => {
                observer.event(&Event::Hashed { path: &path, bytes: read.stamp.size });
                state.insert(&path, read.stamp, read.digest, read.settled);
                walked.files.push((path, read.stamp));
                state.save_if_due()?;
            }
            // It vanished after the folder was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => walked.skip(path, IssueKind::Unreadable, error.to_string()),
        }
    }
    Ok(to_hash)
}

/// All files of a folder, as a plan is made from them. `retry_refused` treats refused files like new ones.
pub(crate) fn local_files(walked: &Walked, state: &State, retry_refused: bool) -> Vec<LocalFile> {
    let content = |path: &str| match state.get(path) {
        None => Content::Unsendable,
        Some(entry) => match &entry.refused {
            Some(reason) if !retry_refused => Content::Refused(reason.clone()),
            _ => Content::Known(entry.digest),
        },
    };
    let sendable = walked.files.iter().map(|(path, stamp)| LocalFile {
        path: path.clone(),
        size: stamp.size,
        content: content(path),
    });
    let unsendable = walked.unsendable.iter().map(|path| LocalFile {
        path: path.clone(),
        size: 0,
        content: Content::Unsendable,
    });
    let mut files: Vec<_> = sendable.chain(unsendable).collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    files
}

struct Read {
    stamp: Stamp,
    digest: Digest,
    settled: bool,
}

fn read(path: &Path) -> io::Result<Read> {
    let file = open_regular(path)?;
    let before = stamp(&file.metadata()?);
    let now = SystemTime::now();
    let digest = Digest::of_reader(&file)?;
    let after = stamp(&file.metadata()?);
    Ok(Read { stamp: before, digest, settled: before == after && is_settled(before, now) })
}

fn is_settled(stamp: Stamp, now: SystemTime) -> bool {
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let limit = now.saturating_sub(SETTLED_AFTER).as_nanos();
    u128::try_from(stamp.modified).map_or(true, |modified| modified <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_settled_two_seconds_after_its_change() {
        let at = |seconds: u64| UNIX_EPOCH + Duration::from_secs(seconds);
        let modified = |seconds: i64| Stamp { size: 1, modified: seconds * 1_000_000_000 };
        assert!(is_settled(modified(100), at(102)));
        assert!(!is_settled(modified(100), at(101)));
        assert!(!is_settled(modified(100), at(50)), "a time in the future proves nothing");
        assert!(is_settled(modified(-5), at(50)), "times before 1970 are old");
    }
}

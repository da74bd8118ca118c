//! Gives free pages back to the file system while the environment is in use. LMDB keeps the pages that deletes leave for
//! later writes and never makes its file smaller. Here their blocks are freed (holes are punched into the file), which
//! changes neither its length nor anything that LMDB reads: it writes a free page before it reads it. See
//! docs/studies.md#giving-pages-back.

use std::{
    fs::File,
    io,
    time::{Duration, Instant},
};

use super::{DATA, Environment, readers::Readers};
use crate::{error::InternalResult, page_check::FreePages};

/// How long other writes may wait for this.
const SLICE: Duration = Duration::from_millis(20);

/// Up to one in this many of the bytes in use is kept free for later writes. See docs/studies.md#giving-pages-back.
const SPARE_SHARE: u64 = 16;
/// But not more bytes than these, unless the options say so: the largest transactions write fewer.
const MAX_SPARE: u64 = 128 << 20;

/// What was given back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GivenBack {
    pub(crate) bytes: u64,
    /// The page from which to go on, if the time was up.
    pub(crate) next: Option<u64>,
}

/// Frees the blocks of free pages, from the page `from` on, if the file takes more than `spare` bytes, and more than a
/// share, beyond those in use. The caller must be the only writer, and have no write transaction open. Stops after a
/// slice of time. `None` if the file system has no holes.
pub(super) fn give_back(
    env: &Environment,
    readers: &Readers,
    spare: u64,
    from: u64,
) -> InternalResult<Option<GivenBack>> {
    match punch(env, readers, spare, (from, SLICE)) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
        given => Ok(Some(given?)),
    }
}

/// Does it for `slice`, or for as long as reading the list of free pages took, which can be longer for a large file.
fn punch(
    env: &Environment,
    readers: &Readers,
    spare: u64,
    (from, slice): (u64, Duration),
) -> io::Result<GivenBack> {
    let reading = Instant::now();
    // Not a copy of LMDB's own handle, whose position it sets before it writes.
    let file = File::options().read(true).write(true).open(env.path().join(DATA))?;
    let Some(free) = FreePages::read(file.try_clone()?, readers.oldest(env) as u64)? else {
        return Ok(GivenBack::default());
    };
    let used = free.used * free.page as u64;
    let mut given = GivenBack::default();
    if allocated(&file)? <= used + spare.max((used / SPARE_SHARE).min(MAX_SPARE)) {
        return Ok(given);
    }
    let (began, slice) = (Instant::now(), slice.max(reading.elapsed()));
    let runs = free.runs.into_iter().filter(|(first, _)| *first >= from);
    for (at, (first, pages)) in runs.enumerate() {
        // However short the time is, one run is given back, so that the last one is reached.
        if at > 0 && began.elapsed() > slice {
            return Ok(GivenBack { next: Some(first), ..given });
        }
        let (start, length) = (first * free.page as u64, pages * free.page as u64);
        if has_data(&file, start, length)? {
            punch_hole(&file, start, length)?;
            given.bytes += length;
        }
    }
    Ok(given)
}

/// The bytes of the blocks that a file takes.
#[cfg(target_os = "linux")]
fn allocated(file: &File) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.blocks() * 512)
}

/// Whether a range contains anything but holes.
#[cfg(target_os = "linux")]
fn has_data(file: &File, start: u64, length: u64) -> io::Result<bool> {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(start)) {
        Ok(next) => Ok(next < start + length),
        // There is no data behind the start.
        Err(rustix::io::Errno::NXIO) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
fn punch_hole(file: &File, start: u64, length: u64) -> io::Result<()> {
    use rustix::fs::FallocateFlags;
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(rustix::fs::fallocate(file, flags, start, length)?)
}

/// On other systems all space is kept for later writes.
#[cfg(not(target_os = "linux"))]
fn allocated(_: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn has_data(_: &File, _: u64, _: u64) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn punch_hole(_: &File, _: u64, _: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use lkr_state::{Error, ErrorKind, Result};

/// The beginning of the file: its format.
pub(super) const HEADER: &[u8] = b"lkr-journal-1\n\0\0";

/// The length and the checksum before a text.
const PREFIX: usize = 8;

/// The frames of a file.
pub(super) struct Frames<'a> {
    pub(super) frames: Vec<&'a [u8]>,
    /// The length of the file up to the last whole frame.
    pub(super) bytes: u64,
}

/// The frame of a text.
pub(super) fn frame(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut frame = Vec::with_capacity(PREFIX + text.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&crc_fast::crc32_iscsi(text).to_le_bytes());
    frame.extend_from_slice(text);
    frame
}

/// The whole frames of a file. What follows them was cut off by a kill and was never acknowledged.
///
/// # Errors
/// `Corrupt` if the file is no journal, or if a whole frame follows a damaged one.
pub(super) fn read_frames(file: &[u8]) -> Result<Frames<'_>> {
    let Some(mut rest) = file.strip_prefix(HEADER) else {
        // A kill may also cut the header off.
        return match HEADER.starts_with(file) {
            true => Ok(Frames { frames: Vec::new(), bytes: 0 }),
            false => Err(corrupt("the file is not a journal of this version")),
        };
    };
    let mut frames = Vec::new();
    while let Some((text, after)) = split_frame(rest) {
        frames.push(text);
        rest = after;
    }
    let has_later_frame = (1..rest.len()).any(|at| rest.get(at..).and_then(split_frame).is_some());
    if has_later_frame {
        return Err(corrupt("a frame of the journal is damaged"));
    }
    Ok(Frames { frames, bytes: (file.len() - rest.len()) as u64 })
}

/// The text of the first frame and what follows it; `None` if the frame is cut off or damaged.
fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|&length| length > 0)?;
    let (text, rest) = rest.split_at_checked(length)?;
    (crc_fast::crc32_iscsi(text) == u32::from_le_bytes(*checksum)).then_some((text, rest))
}

fn corrupt(reason: &'static str) -> Error {
    Error::new(ErrorKind::Corrupt, "open journal", reason)
}

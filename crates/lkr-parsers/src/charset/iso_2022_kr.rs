//! ISO-2022-KR: Korean mail in seven bits. A header announces it, and control characters shift between ASCII and the pairs
//! of KS X 1001, whose bytes are those of EUC-KR without the highest bit. `encoding_rs` does not decode it.

use std::borrow::Cow;

use encoding_rs::EUC_KR;

use super::Decoded;

/// Announces the encoding, once, at the start of a line.
const HEADER: &[u8] = b"\x1b$)C";

const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

/// Decodes `bytes` if the header announces the encoding and a character uses it.
pub(super) fn guess(bytes: &[u8]) -> Option<Decoded<'_>> {
    let announced = bytes.is_ascii()
        && bytes.contains(&SHIFT_OUT)
        && bytes.windows(HEADER.len()).any(|window| window == HEADER);
    announced.then(|| read(bytes))
}

fn read(bytes: &[u8]) -> Decoded<'_> {
    let bytes = eight_bits(bytes);
    let (text, lossy) = EUC_KR.decode_without_bom_handling(&bytes);
    super::without_control_characters(Cow::Owned(text.into_owned()), "ISO-2022-KR", lossy)
}

/// The same text as EUC-KR. Shifted bytes get the highest bit; headers and shifts are removed.
fn eight_bits(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut rest, mut shifted) = (bytes, false);
    while let [byte, after @ ..] = rest {
        if let Some(after) = rest.strip_prefix(HEADER) {
            rest = if matches!(out.last(), None | Some(b'\n')) { without_line_end(after) } else { after };
            continue;
        }
        rest = after;
        match *byte {
            SHIFT_OUT => shifted = true,
            SHIFT_IN => shifted = false,
            b'\r' | b'\n' => {
                // A line begins in ASCII.
                shifted = false;
                out.push(*byte);
            }
            byte @ 0x21..=0x7e if shifted => out.push(byte | 0x80),
            byte => out.push(byte),
        }
    }
    out
}

/// The bytes after a header, which may be a line of its own.
fn without_line_end(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\r\n").or_else(|| bytes.strip_prefix(b"\n")).unwrap_or(bytes)
}

//! The first byte chooses the encoding that the sender declares, the others are the text.
#![no_main]

use std::str;

use libfuzzer_sys::fuzz_target;
use lkr_parsers::decode;

const DECLARED: [Option<&str>; 8] = [
    None,
    Some("utf-8"),
    Some("utf-16le"),
    Some("iso-8859-1"),
    Some("shift_jis"),
    Some("gb18030"),
    Some("iso-2022-jp"),
    Some("no such encoding"),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let declared = DECLARED[usize::from(*choice) % DECLARED.len()];
    let decoded = decode(bytes, declared);
    // UTF-8 text is returned unchanged, unless a zero byte suggests another encoding.
    if let Ok(text) = str::from_utf8(bytes)
        && declared.is_none()
        && !text.starts_with('\u{feff}')
        && !text.contains('\0')
    {
        assert_eq!((decoded.text.as_ref(), decoded.lossy), (text, false));
    }
});

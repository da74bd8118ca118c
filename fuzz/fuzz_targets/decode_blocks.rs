//! The input is a line of text, followed by the encoded blocks of that text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lkr_parsers::{decode_blocks, encode_blocks};

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return };
    let (text, blocks) = bytes.split_at(end);
    let Ok(text) = str::from_utf8(text) else { return };
    let Ok(blocks) = decode_blocks(&blocks[1..], text) else { return };
    let mut end = 0;
    for block in &blocks {
        assert!(block.range.start >= end, "blocks overlap or are out of order at byte {end}");
        assert!(text.get(block.range.clone()).is_some(), "a block is not of the text: {:?}", block.range);
        end = block.range.end;
    }
    let again = encode_blocks(&blocks).expect("what was read can be written");
    assert_eq!(decode_blocks(&again, text).expect("what was written can be read"), blocks);
});

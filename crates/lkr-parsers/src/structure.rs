//! The stored form of the blocks of a text.

use lkr_domain::{Block, BlockKind};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, MAX_TITLE_CHARS, Result};

/// The stored blocks with the version of their format.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned {
    #[serde(rename = "1")]
    V1 { blocks: Vec<BlockV1> },
}

/// A block. `s` is the first byte of its range, `e` the byte after the last.
#[derive(Debug, Serialize, Deserialize)]
struct BlockV1 {
    k: KindV1,
    s: usize,
    e: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    f: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KindV1 {
    H(u8, String),
    P,
    L,
    T,
    /// A table's header.
    Th,
    C,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Encodes blocks for storage.
pub fn encode_blocks(blocks: &[Block]) -> Result<Vec<u8>> {
    let blocks = blocks.iter().map(BlockV1::from).collect();
    serde_json::to_vec(&Versioned::V1 { blocks })
        .map_err(|error| Error::new(ErrorKind::Internal, "encode blocks", error))
}

/// Decodes blocks of `text` that [`encode_blocks`] encoded.
///
/// # Errors
/// `Input` if the bytes are not encoded blocks, or the blocks do not fit this text.
pub fn decode_blocks(bytes: &[u8], text: &str) -> Result<Vec<Block>> {
    let invalid = |reason: String| Error::new(ErrorKind::Input, "decode blocks", reason);
    let Versioned::V1 { blocks } = serde_json::from_slice(bytes).map_err(|e| invalid(e.to_string()))?;
    let mut end = 0;
    for block in &blocks {
        if block.s < end || text.get(block.s..block.e).is_none() {
            return Err(invalid(format!("block at {}..{} does not fit the text", block.s, block.e)));
        }
        if matches!(&block.k, KindV1::H(_, title) if title.chars().count() > MAX_TITLE_CHARS) {
            return Err(invalid(format!("heading at {} is too long", block.s)));
        }
        end = block.e;
    }
    Ok(blocks.into_iter().map(Block::from).collect())
}

impl From<&Block> for BlockV1 {
    fn from(block: &Block) -> Self {
        let k = match &block.kind {
            BlockKind::Heading { level, title } => KindV1::H(*level, title.clone()),
            BlockKind::Paragraph => KindV1::P,
            BlockKind::List => KindV1::L,
            BlockKind::Table => KindV1::T,
            BlockKind::TableHeader => KindV1::Th,
            BlockKind::Code => KindV1::C,
        };
        Self { k, s: block.range.start, e: block.range.end, p: block.page, f: block.furniture }
    }
}

impl From<BlockV1> for Block {
    fn from(block: BlockV1) -> Self {
        let kind = match block.k {
            KindV1::H(level, title) => BlockKind::Heading { level: level.max(1), title },
            KindV1::P => BlockKind::Paragraph,
            KindV1::L => BlockKind::List,
            KindV1::T => BlockKind::Table,
            KindV1::Th => BlockKind::TableHeader,
            KindV1::C => BlockKind::Code,
        };
        Self { kind, range: block.s..block.e, page: block.p, furniture: block.f }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Composer;

    #[test]
    fn encoded_blocks_decode_to_equal_blocks() {
        let mut composer = Composer::new();
        composer
            .push(BlockKind::Heading { level: 2, title: "Überblick".into() }, "Überblick", Some(1))
            .unwrap();
        use BlockKind::{Code, List, Paragraph, Table, TableHeader};
        for kind in [Paragraph, List, TableHeader, Table, Code] {
            composer.push(kind, "words", None).unwrap();
        }
        composer.push_furniture(BlockKind::Paragraph, "page 1", Some(1)).unwrap();
        let parsed = composer.finish().unwrap();
        let bytes = encode_blocks(&parsed.blocks).unwrap();
        assert_eq!(decode_blocks(&bytes, &parsed.text).unwrap(), parsed.blocks);
    }

    #[test]
    fn blocks_that_do_not_fit_text_are_rejected() {
        let block = |s, e| format!(r#"{{"k":"p","s":{s},"e":{e}}}"#);
        let read = |blocks: &str| {
            decode_blocks(format!(r#"{{"v":"1","blocks":[{blocks}]}}"#).as_bytes(), "aäb").map(|b| b.len())
        };
        assert_eq!(read(&[block(0, 1), block(1, 3)].join(",")).unwrap(), 2);
        for wrong in [block(0, 2), block(0, 5), block(3, 1), [block(0, 3), block(1, 4)].join(",")] {
            assert_eq!(read(&wrong).unwrap_err().kind(), ErrorKind::Input, "{wrong}");
        }
        assert!(decode_blocks(b"{}", "a").is_err());
        assert!(decode_blocks(b"", "a").is_err());
    }
}

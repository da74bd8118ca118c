//! The blocks of a text as they are written down beside it.

use lkr_domain::{Block, BlockKind};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, MAX_TITLE_CHARS, Result};

/// What is written down, with the version that tells how to read it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned {
    #[serde(rename = "1")]
    V1 { blocks: Vec<BlockV1> },
}

/// A block by the first byte of its range and the one after the last.
#[derive(Debug, Serialize, Deserialize)]
struct BlockV1 {
    k: Kind,
    s: usize,
    e: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    p: Option<u32>,
    #[serde(default, skip_serializing_if = "is_false")]
    f: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    H(u8, String),
    P,
    L,
    T,
    C,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Writes blocks down.
pub fn encode_blocks(blocks: &[Block]) -> Result<Vec<u8>> {
    let blocks = blocks.iter().map(BlockV1::from).collect();
    serde_json::to_vec(&Versioned::V1 { blocks })
        .map_err(|error| Error::new(ErrorKind::Internal, "write the blocks", error))
}

/// Reads what [`encode_blocks`] wrote of `text`.
///
/// # Errors
/// `Input` where the bytes are no such thing, or the blocks are none of this text.
pub fn decode_blocks(bytes: &[u8], text: &str) -> Result<Vec<Block>> {
    let broken = |reason: String| Error::new(ErrorKind::Input, "read the blocks", reason);
    let Versioned::V1 { blocks } = serde_json::from_slice(bytes).map_err(|e| broken(e.to_string()))?;
    let mut end = 0;
    for block in &blocks {
        if block.s < end || text.get(block.s..block.e).is_none() {
            return Err(broken(format!("a block at {}..{} is not of this text", block.s, block.e)));
        }
        if matches!(&block.k, Kind::H(_, title) if title.chars().count() > MAX_TITLE_CHARS) {
            return Err(broken(format!("the heading at {} is too long", block.s)));
        }
        end = block.e;
    }
    Ok(blocks.into_iter().map(Block::from).collect())
}

impl From<&Block> for BlockV1 {
    fn from(block: &Block) -> Self {
        let k = match &block.kind {
            BlockKind::Heading { level, title } => Kind::H(*level, title.clone()),
            BlockKind::Paragraph => Kind::P,
            BlockKind::List => Kind::L,
            BlockKind::Table => Kind::T,
            BlockKind::Code => Kind::C,
        };
        Self { k, s: block.range.start, e: block.range.end, p: block.page, f: block.furniture }
    }
}

impl From<BlockV1> for Block {
    fn from(block: BlockV1) -> Self {
        let kind = match block.k {
            Kind::H(level, title) => BlockKind::Heading { level: level.max(1), title },
            Kind::P => BlockKind::Paragraph,
            Kind::L => BlockKind::List,
            Kind::T => BlockKind::Table,
            Kind::C => BlockKind::Code,
        };
        Self { kind, range: block.s..block.e, page: block.p, furniture: block.f }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Composer;

    #[test]
    fn blocks_come_back_as_they_were() {
        let mut composer = Composer::new();
        composer
            .push(BlockKind::Heading { level: 2, title: "Überblick".into() }, "Überblick", Some(1))
            .unwrap();
        for kind in [BlockKind::Paragraph, BlockKind::List, BlockKind::Table, BlockKind::Code] {
            composer.push(kind, "words", None).unwrap();
        }
        composer.push_furniture(BlockKind::Paragraph, "page 1", Some(1)).unwrap();
        let parsed = composer.finish().unwrap();
        let bytes = encode_blocks(&parsed.blocks).unwrap();
        assert_eq!(decode_blocks(&bytes, &parsed.text).unwrap(), parsed.blocks);
    }

    #[test]
    fn blocks_of_another_text_are_refused() {
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

use lkr_domain::{Block, BlockKind, Parsed};

use crate::{Parser, Result, Source, compose::MAX_BLOCKS, markdown::lines, text};

/// Parses plain text in any encoding. The text stays unchanged; its blocks are the paragraphs between blank lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlainText;

impl Parser for PlainText {
    fn name(&self) -> &'static str {
        "plain-text"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let (text, warnings) = text::read(source)?;
        let blocks = paragraphs(&text);
        Ok(Parsed { text, blocks, warnings })
    }
}

fn paragraphs(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for line in lines(text) {
        if line.is_blank() {
            open = false;
            continue;
        }
        let is_full = blocks.len() >= MAX_BLOCKS;
        match blocks.last_mut() {
            Some(block) if open || is_full => block.range.end = line.content.end,
            _ => blocks.push(Block {
                kind: BlockKind::Paragraph,
                range: line.content.clone(),
                page: None,
                furniture: false,
            }),
        }
        open = true;
    }
    blocks
}

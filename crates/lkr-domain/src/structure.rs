//! What a parser finds in a text, and what the layers make of it.

use std::{borrow::Cow, ops::Range};

use serde::{Deserialize, Serialize};

/// A range of a text in Unicode code points: `start` is the first, `end` the one after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CharSpan {
    /// The first code point.
    pub start: u32,
    /// The code point after the last.
    pub end: u32,
}

impl CharSpan {
    /// Whether `other` lies inside this span.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The length in code points.
    #[must_use]
    pub const fn len(self) -> u32 {
        self.end.saturating_sub(self.start)
    }

    /// Whether the span holds nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// The pages, counted from 1, on which a span begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSpan {
    /// The page of the first code point.
    pub start: u32,
    /// The page of the last code point.
    pub end: u32,
}

/// A parsed source: one extracted text, and blocks that are ranges of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The extracted text.
    pub text: String,
    /// Blocks in the order of the text, without overlap. Text between blocks is white space or mark-up.
    pub blocks: Vec<Block>,
    /// What was left out or guessed, for the person who sent the source.
    pub warnings: Vec<String>,
}

impl Parsed {
    /// The text without its furniture.
    #[must_use]
    pub fn body(&self) -> Cow<'_, str> {
        let cut = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let mut body = Cow::Borrowed("");
        let mut start = 0;
        for block in self.blocks.iter().filter(|block| block.furniture) {
            body += cut(start..block.range.start);
            start = block.range.end.max(start);
        }
        body += cut(start..self.text.len());
        body
    }
}

/// A range of the extracted text with a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// What the block is.
    pub kind: BlockKind,
    /// Its range in bytes of the extracted text, on character boundaries.
    pub range: Range<usize>,
    /// The page it begins on, counted from 1, where the source has pages.
    pub page: Option<u32>,
    /// Furniture, such as a running header: part of the text, but of no node, chunk or vector.
    pub furniture: bool,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading. The block's range holds the whole heading with its mark-up.
    Heading {
        /// 1 for the highest level.
        level: u8,
        /// The heading's words, without mark-up.
        title: String,
    },
    /// A paragraph.
    Paragraph,
    /// A list with its items.
    List,
    /// A table.
    Table,
    /// Code, or other text whose line breaks matter.
    Code,
}

/// A section (L2) or a subsection or passage (L3) of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The position within the layer of the document, from 0.
    pub ordinal: u32,
    /// The ordinal of the L2 node that an L3 node lies in; none for L2.
    pub parent: Option<u32>,
    /// The heading, or the first words where there is none.
    pub title: String,
    /// An extractive summary.
    pub summary: String,
    /// The headings that lead here, below the document's title, the node's own included.
    pub path: Vec<String>,
    /// Its range in the extracted text.
    pub span: CharSpan,
    /// Its pages, where the source has pages.
    pub pages: Option<PageSpan>,
}

/// A passage of some 200 tokens, the unit of citation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The position within the document, from 0.
    pub ordinal: u32,
    /// The ordinal of the L3 node that it lies in.
    pub parent: u32,
    /// The headings that lead here, below the document's title, deeper ones than L3 included.
    pub path: Vec<String>,
    /// Its range in the extracted text.
    pub span: CharSpan,
    /// Its pages, where the source has pages.
    pub pages: Option<PageSpan>,
    /// The extracted text cut at `span`.
    pub text: String,
}

/// The top of the layers: what L1 says of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The title given, else the first heading, else the first line, of at most 120 characters.
    pub title: String,
    /// An extractive summary.
    pub summary: String,
    /// The words that tell the document apart, the strongest first.
    pub keywords: Vec<String>,
    /// The ISO 639-1 code of the language; empty where it cannot be told.
    pub language: String,
    /// The length of the extracted text in code points.
    pub char_count: u32,
}

/// A document in its four layers.
///
/// Every document has at least one L2 node, one L3 node and one chunk. Nodes of a layer follow the text in order
/// without overlap; an L3 node lies inside its L2 node, a chunk inside its L3 node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layered {
    /// L1.
    pub root: Root,
    /// L2 nodes in order.
    pub l2: Vec<Node>,
    /// L3 nodes in order.
    pub l3: Vec<Node>,
    /// Chunks in order.
    pub chunks: Vec<Chunk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_what_is_no_furniture() {
        let block = |range, furniture| Block { kind: BlockKind::Paragraph, range, page: None, furniture };
        let parsed = |blocks| Parsed { text: "aa\n\nbb\n\ncc".to_owned(), blocks, warnings: Vec::new() };
        let none = parsed(vec![block(0..2, false), block(4..6, false)]);
        assert!(matches!(none.body(), Cow::Borrowed("aa\n\nbb\n\ncc")));
        let behind = parsed(vec![block(0..2, false), block(4..6, true), block(8..10, true)]);
        assert_eq!(behind.body(), "aa\n\n\n\n");
        let between = parsed(vec![block(0..2, true), block(4..6, false), block(8..10, true)]);
        assert_eq!(between.body(), "\n\nbb\n\n");
        assert_eq!(
            parsed(vec![block(0..99, true)]).body(),
            "",
            "blocks that are none of the text do no harm"
        );
    }
}

//! The result of a parser, and the layers that are built from it.

use std::{borrow::Cow, ops::Range};

use serde::{Deserialize, Serialize};

/// A half-open range of a text in Unicode code points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CharSpan {
    /// The first code point.
    pub start: u32,
    /// The end of the range, exclusive.
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

    /// Whether the span is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// The first and the last page of a span, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSpan {
    /// The page of the first code point.
    pub start: u32,
    /// The page of the last code point.
    pub end: u32,
}

/// The result of parsing a source: one extracted text, and blocks that are ranges of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed {
    /// The extracted text.
    pub text: String,
    /// The blocks in text order, without overlaps. The text between blocks is white space or mark-up.
    pub blocks: Vec<Block>,
    /// Warnings for the client about content that was skipped or guessed.
    pub warnings: Vec<String>,
}

impl Parsed {
    /// The text without its furniture.
    #[must_use]
    pub fn body(&self) -> Cow<'_, str> {
        let slice = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        let mut body = Cow::Borrowed("");
        let mut start = 0;
        for block in self.blocks.iter().filter(|block| block.furniture) {
            body += slice(start..block.range.start);
            start = block.range.end.max(start);
        }
        body += slice(start..self.text.len());
        body
    }
}

/// A range of the extracted text with a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The kind of block.
    pub kind: BlockKind,
    /// The range in bytes of the extracted text, on character boundaries.
    pub range: Range<usize>,
    /// The page on which the block begins, counted from 1; `None` if the source has no pages.
    pub page: Option<u32>,
    /// Whether the block is furniture, such as a page header: part of the text, but not of nodes, chunks or vectors.
    pub furniture: bool,
}

/// The kind of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind {
    /// A heading. The range of the block contains the heading with its mark-up.
    Heading {
        /// 1 for the highest level.
        level: u8,
        /// The text of the heading, without mark-up.
        title: String,
    },
    /// A paragraph.
    Paragraph,
    /// A list with all of its items.
    List,
    /// A table.
    Table,
    /// The header of the table that is the next block, if the parser tells it from the rows. It is repeated in what is
    /// indexed of a chunk that begins inside the table.
    TableHeader,
    /// Code, or other text whose line breaks matter.
    Code,
}

/// A section (L2) or a subsection or passage (L3) of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// The position within the layer of the document, from 0.
    pub ordinal: u32,
    /// The ordinal of the L2 node that contains an L3 node; `None` for L2 nodes.
    pub parent: Option<u32>,
    /// The heading, or the first words if there is no heading.
    pub title: String,
    /// An extractive summary.
    pub summary: String,
    /// The heading path below the document's title, including the node's own heading.
    pub path: Vec<String>,
    /// The range in the extracted text.
    pub span: CharSpan,
    /// The pages; `None` if the source has no pages.
    pub pages: Option<PageSpan>,
}

/// A passage of about 200 tokens; the unit of citation. See docs/studies.md#chunk-size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The position within the document, from 0.
    pub ordinal: u32,
    /// The ordinal of the L3 node that contains the chunk.
    pub parent: u32,
    /// The heading path below the document's title, including headings deeper than L3.
    pub path: Vec<String>,
    /// The range in the extracted text.
    pub span: CharSpan,
    /// The pages; `None` if the source has no pages.
    pub pages: Option<PageSpan>,
    /// The extracted text cut at `span`.
    pub text: String,
    /// The header of the table in which the chunk begins, which is indexed with the chunk; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub table_header: String,
}

/// The title with which the nodes and chunks of a document are indexed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexedTitle {
    /// The title.
    pub text: String,
    /// Whether it is also the first heading of every path, which is then not indexed a second time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_paths: bool,
}

impl From<&str> for IndexedTitle {
    /// A title that no path repeats.
    fn from(title: &str) -> Self {
        Self { text: title.to_owned(), begins_paths: false }
    }
}

/// The L1 record of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// The given title, or the first heading, or the first line. At most 120 characters.
    pub title: String,
    /// The title with which the nodes and chunks are indexed: another one if `title` is only the name of a file.
    pub indexed_title: IndexedTitle,
    /// An extractive summary.
    pub summary: String,
    /// The most characteristic words of the document, strongest first.
    pub keywords: Vec<String>,
    /// The ISO 639-1 code of the language; empty if it is unknown.
    pub language: String,
    /// The length of the extracted text in code points.
    pub char_count: u32,
}

/// A document in its four layers.
///
/// Every document has at least one L2 node, one L3 node and one chunk. The nodes of a layer are in text order and do not
/// overlap. Each L3 node is contained in its L2 node, and each chunk in its L3 node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layered {
    /// L1.
    pub root: Root,
    /// The L2 nodes in text order.
    pub l2: Vec<Node>,
    /// The L3 nodes in text order.
    pub l3: Vec<Node>,
    /// The chunks in text order.
    pub chunks: Vec<Chunk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn body_of_a_parsed_text_leaves_out_furniture() {
        let block = |range, furniture| Block { kind: BlockKind::Paragraph, range, page: None, furniture };
        let parsed = |blocks| Parsed { text: "aa\n\nbb\n\ncc".to_owned(), blocks, warnings: Vec::new() };
        let without_furniture = parsed(vec![block(0..2, false), block(4..6, false)]);
        assert!(matches!(without_furniture.body(), Cow::Borrowed("aa\n\nbb\n\ncc")));
        let at_the_end = parsed(vec![block(0..2, false), block(4..6, true), block(8..10, true)]);
        assert_eq!(at_the_end.body(), "aa\n\n\n\n");
        let around = parsed(vec![block(0..2, true), block(4..6, false), block(8..10, true)]);
        assert_eq!(around.body(), "\n\nbb\n\n");
        assert_eq!(
            parsed(vec![block(0..99, true)]).body(),
            "",
            "a block beyond the end of the text must be tolerated"
        );
    }
}

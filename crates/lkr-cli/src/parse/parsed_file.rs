//! Parsed files and their JSON form.

use std::iter::Peekable;

use lkr::{Block, BlockKind, Parsed};
use serde::Serialize;

/// A parsed file.
#[derive(Debug)]
pub(super) struct ParsedFile {
    pub(super) file_name: String,
    pub(super) plugin: String,
    pub(super) parsed: Parsed,
}

/// The JSON form of a parsed file.
#[derive(Debug, Serialize)]
struct JsonFile<'a> {
    file: &'a str,
    plugin: &'a str,
    warnings: &'a [String],
    blocks: Vec<JsonBlock<'a>>,
    text: &'a str,
}

/// A block with its range in code points of the text.
#[derive(Debug, PartialEq, Serialize)]
struct JsonBlock<'a> {
    kind: &'static str,
    level: Option<u8>,
    title: Option<&'a str>,
    page: Option<u32>,
    char_start: usize,
    char_end: usize,
    furniture: bool,
}

impl ParsedFile {
    /// One line of JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        let Parsed { text, blocks, warnings } = &self.parsed;
        let blocks = json_blocks(text, blocks);
        serde_json::to_string(&JsonFile {
            file: &self.file_name,
            plugin: &self.plugin,
            warnings,
            blocks,
            text,
        })
    }
}

/// The text and its blocks without furniture.
pub(super) fn body(parsed: &Parsed) -> Parsed {
    let mut body = Parsed { warnings: parsed.warnings.clone(), ..Parsed::default() };
    let mut blocks = parsed.blocks.iter().peekable();
    let mut from = 0;
    while let Some(block) = blocks.next() {
        if block.furniture {
            body.text.push_str(slice(&parsed.text, from, block.range.start));
            from = next_start(&mut blocks).unwrap_or(parsed.text.len());
        } else {
            let omitted = from - body.text.len();
            let range = block.range.start - omitted..block.range.end - omitted;
            body.blocks.push(Block { range, ..block.clone() });
        }
    }
    body.text.push_str(slice(&parsed.text, from, parsed.text.len()));
    body.text.truncate(body.text.trim_end().len());
    body
}

fn next_start<'a>(blocks: &mut Peekable<impl Iterator<Item = &'a Block>>) -> Option<usize> {
    blocks.peek().map(|block| block.range.start)
}

fn json_blocks<'a>(text: &str, blocks: &'a [Block]) -> Vec<JsonBlock<'a>> {
    let (mut bytes, mut chars) = (0, 0);
    let mut chars_before = |end: usize| {
        chars += slice(text, bytes, end).chars().count();
        bytes = end;
        chars
    };
    let to_json_block = |block: &'a Block| {
        let (kind, level, title) = kind_fields(&block.kind);
        let (char_start, char_end) = (chars_before(block.range.start), chars_before(block.range.end));
        JsonBlock { kind, level, title, page: block.page, char_start, char_end, furniture: block.furniture }
    };
    blocks.iter().map(to_json_block).collect()
}

fn kind_fields(kind: &BlockKind) -> (&'static str, Option<u8>, Option<&str>) {
    match kind {
        BlockKind::Heading { level, title } => ("heading", Some(*level), Some(title)),
        BlockKind::Paragraph => ("paragraph", None, None),
        BlockKind::List => ("list", None, None),
        BlockKind::Table => ("table", None, None),
        BlockKind::TableHeader => ("table header", None, None),
        BlockKind::Code => ("code", None, None),
    }
}

/// The text between two byte offsets of blocks, which are in order and on character boundaries.
fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parsed(parts: &[(BlockKind, &str, bool)]) -> Parsed {
        let mut parsed = Parsed::default();
        for (kind, words, furniture) in parts {
            if !parsed.text.is_empty() {
                parsed.text.push_str("\n\n");
            }
            let start = parsed.text.len();
            parsed.text.push_str(words);
            let range = start..parsed.text.len();
            parsed.blocks.push(Block { kind: kind.clone(), range, page: Some(1), furniture: *furniture });
        }
        parsed
    }

    #[test]
    fn json_offsets_count_code_points() {
        let title = BlockKind::Heading { level: 2, title: "Größe".to_owned() };
        let parsed = parsed(&[(title, "Größe", false), (BlockKind::Table, "東京", true)]);
        let file = ParsedFile { file_name: "a.pdf".to_owned(), plugin: "lopdf".to_owned(), parsed };
        let written: serde_json::Value = serde_json::from_str(&file.to_json().unwrap()).unwrap();
        let block = |kind, level, title, start, end, furniture| {
            json!({"kind": kind, "level": level, "title": title, "page": 1, "char_start": start, "char_end": end,
                "furniture": furniture})
        };
        let blocks = [
            block("heading", json!(2), json!("Größe"), 0, 5, false),
            block("table", json!(null), json!(null), 7, 9, true),
        ];
        let expected = json!({"file": "a.pdf", "plugin": "lopdf", "warnings": [], "blocks": blocks,
            "text": "Größe\n\n東京"});
        assert_eq!(written, expected);
    }

    #[test]
    fn body_omits_furniture_at_every_position() {
        let part = |words, furniture| (BlockKind::Paragraph, words, furniture);
        let parts =
            [part("né", true), part("öne", false), part("x", true), part("two", false), part("y", true)];
        let body = body(&parsed(&parts));
        assert_eq!(body.text, "öne\n\ntwo");
        let words: Vec<_> = body.blocks.iter().map(|block| body.text.get(block.range.clone())).collect();
        assert_eq!(words, [Some("öne"), Some("two")]);
    }
}

use std::iter::Peekable;

use lkr::{Block, BlockKind, Parsed};
use serde::Serialize;

/// What was read in a file.
#[derive(Debug)]
pub(super) struct ParsedFile {
    pub(super) file_name: String,
    pub(super) plugin: String,
    pub(super) parsed: Parsed,
}

/// An answer as it is written.
#[derive(Debug, Serialize)]
struct Wire<'a> {
    file: &'a str,
    plugin: &'a str,
    warnings: &'a [String],
    blocks: Vec<WireBlock<'a>>,
    text: &'a str,
}

/// A block with its range in code points of the text.
#[derive(Debug, PartialEq, Serialize)]
struct WireBlock<'a> {
    kind: &'static str,
    level: Option<u8>,
    title: Option<&'a str>,
    page: Option<u32>,
    char_start: usize,
    char_end: usize,
    furniture: bool,
}

impl ParsedFile {
    /// The answer in one line of JSON.
    pub(super) fn to_json(&self) -> serde_json::Result<String> {
        let Parsed { text, blocks, warnings } = &self.parsed;
        let blocks = wire_blocks(text, blocks);
        serde_json::to_string(&Wire { file: &self.file_name, plugin: &self.plugin, warnings, blocks, text })
    }
}

/// What is no furniture, close together.
pub(super) fn body(parsed: &Parsed) -> Parsed {
    let mut body = Parsed { warnings: parsed.warnings.clone(), ..Parsed::default() };
    let mut blocks = parsed.blocks.iter().peekable();
    let mut from = 0;
    while let Some(block) = blocks.next() {
        if block.furniture {
            body.text.push_str(cut(&parsed.text, from, block.range.start));
            from = next_start(&mut blocks).unwrap_or(parsed.text.len());
        } else {
            let left_out = from - body.text.len();
            let range = block.range.start - left_out..block.range.end - left_out;
            body.blocks.push(Block { range, ..block.clone() });
        }
    }
    body.text.push_str(cut(&parsed.text, from, parsed.text.len()));
    body.text.truncate(body.text.trim_end().len());
    body
}

fn next_start<'a>(blocks: &mut Peekable<impl Iterator<Item = &'a Block>>) -> Option<usize> {
    blocks.peek().map(|block| block.range.start)
}

fn wire_blocks<'a>(text: &str, blocks: &'a [Block]) -> Vec<WireBlock<'a>> {
    let (mut bytes, mut chars) = (0, 0);
    let mut chars_before = |end: usize| {
        chars += cut(text, bytes, end).chars().count();
        bytes = end;
        chars
    };
    let wire = |block: &'a Block| {
        let (kind, level, title) = described(&block.kind);
        let (char_start, char_end) = (chars_before(block.range.start), chars_before(block.range.end));
        WireBlock { kind, level, title, page: block.page, char_start, char_end, furniture: block.furniture }
    };
    blocks.iter().map(wire).collect()
}

fn described(kind: &BlockKind) -> (&'static str, Option<u8>, Option<&str>) {
    match kind {
        BlockKind::Heading { level, title } => ("heading", Some(*level), Some(title)),
        BlockKind::Paragraph => ("paragraph", None, None),
        BlockKind::List => ("list", None, None),
        BlockKind::Table => ("table", None, None),
        BlockKind::Code => ("code", None, None),
    }
}

/// The text between two byte offsets that blocks name, which stand in order and cut no character.
fn cut(text: &str, start: usize, end: usize) -> &str {
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
    fn offsets_count_code_points() {
        let title = BlockKind::Heading { level: 2, title: "Größe".to_owned() };
        let parsed = parsed(&[(title, "Größe", false), (BlockKind::Table, "東京", true)]);
        let answer = ParsedFile { file_name: "a.pdf".to_owned(), plugin: "lopdf".to_owned(), parsed };
        let written: serde_json::Value = serde_json::from_str(&answer.to_json().unwrap()).unwrap();
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
    fn a_body_has_no_furniture_wherever_it_stood() {
        let part = |words, furniture| (BlockKind::Paragraph, words, furniture);
        let parts =
            [part("né", true), part("öne", false), part("x", true), part("two", false), part("y", true)];
        let body = body(&parsed(&parts));
        assert_eq!(body.text, "öne\n\ntwo");
        let words: Vec<_> = body.blocks.iter().map(|block| body.text.get(block.range.clone())).collect();
        assert_eq!(words, [Some("öne"), Some("two")]);
    }
}

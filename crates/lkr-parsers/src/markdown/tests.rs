use lkr_domain::BlockKind;
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser as FullParser, Tag};

use super::*;

/// The blocks of `text` in short form: a letter for the kind, and the level and title of a heading or else the text.
fn outline(text: &str) -> Vec<String> {
    let parsed = Markdown.parse(&text.into()).unwrap();
    assert_eq!(parsed.text, text);
    let describe = |block: lkr_domain::Block| {
        let words = text.get(block.range).unwrap();
        match block.kind {
            BlockKind::Heading { level, title } => format!("h{level} {title}"),
            BlockKind::Paragraph => format!("p {words}"),
            BlockKind::List => format!("l {words}"),
            BlockKind::Table => format!("t {words}"),
            BlockKind::TableHeader => format!("th {words}"),
            BlockKind::Code => format!("c {words}"),
        }
    };
    parsed.blocks.into_iter().map(describe).collect()
}

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(outline(text), expected);
}

#[test]
fn atx_and_setext_headings_are_found() {
    check("# A\n\ntext\n## B ##\n", &["h1 A", "p text", "h2 B"]);
    check("A\n=\n\nB\nC\n---\ntext", &["h1 A", "h2 B C", "p text"]);
    check("A\r\n===\r\ntext\r\n", &["h1 A", "p text"]);
    check("text\n# A", &["p text", "h1 A"]);
    check("  ## A *b*", &["h2 A b"]);
    check("\u{feff}# A", &["h1 A"]);
}

#[test]
fn heading_marks_in_other_blocks_are_not_headings() {
    check("```\n# a\n```\n~~~\nb\n===\n~~~", &["c ```\n# a\n```", "c ~~~\nb\n===\n~~~"]);
    check("    # a\n\n    b", &["c     # a\n\n    b"]);
    check("> # a\n> b", &["p > # a\n> b"]);
    check("- # a\n- b\n---\n", &["l - # a\n- b"]);
    check("<!--\n# a\n\n# b\n-->\ntext", &["c <!--\n# a\n\n# b\n-->", "p text"]);
    check("<pre>\n# a\n</pre>", &["c <pre>\n# a\n</pre>"]);
    check("#hashtag", &["p #hashtag"]);
    check("a\n\n---\n\nb", &["p a", "p b"]);
    check("```\n# never closed", &["c ```\n# never closed"]);
    let long = "word ".repeat(100);
    check(&format!("# {long}"), &[&format!("p # {long}")]);
    check(&format!("{long}\n---\n# A"), &[&format!("p {long}\n---"), "h1 A"]);
}

#[test]
fn front_matter_is_code_block() {
    check("---\ntitle: A\n---\n\ntext", &["c ---\ntitle: A\n---", "p text"]);
    check("+++\ntitle = 'A'\n+++\n# B", &["c +++\ntitle = 'A'\n+++", "h1 B"]);
    check("---\ntitle: never closed", &["p title: never closed"]);
    check("---\n\ntext\n---", &["h2 text"]);
}

#[test]
fn list_keeps_its_continuation_lines() {
    check("- a\n- b\n  c\n\n  d\n\ne", &["l - a\n- b\n  c\n\n  d", "p e"]);
    check("1. a\n   ```\n   # code\n   ```\n2. b\n# H", &["l 1. a\n   ```\n   # code\n   ```\n2. b", "h1 H"]);
    check("text\n- a", &["p text", "l - a"]);
    check("in\n1990. a", &["p in\n1990. a"]);
    check("- a\nlazy\n\n- b", &["l - a\nlazy\n\n- b"]);
    check("* a\n    * b\n        * c\n## H", &["l * a\n    * b\n        * c", "h2 H"]);
}

#[test]
fn table_starts_at_header_row() {
    check("| a | b |\n|---|---|\n| 1 | 2 |\n\nx", &["t | a | b |\n|---|---|\n| 1 | 2 |", "p x"]);
    check("x\na | b\n--- | ---\n1 | 2", &["p x", "t a | b\n--- | ---\n1 | 2"]);
}

#[test]
fn headings_and_blocks_beyond_limit_are_paragraphs_and_merged() {
    let many = Markdown.parse(&"# a\n".repeat(crate::compose::MAX_HEADINGS + 1).as_str().into()).unwrap();
    let headings = many.blocks.iter().filter(|block| matches!(block.kind, BlockKind::Heading { .. })).count();
    assert_eq!(
        (headings, many.blocks.len(), many.warnings.len()),
        (crate::compose::MAX_HEADINGS, crate::compose::MAX_HEADINGS + 1, 1)
    );
    let paragraphs = Markdown.parse(&"a\n\n".repeat(300_000).as_str().into()).unwrap();
    assert_eq!(paragraphs.blocks.len(), 200_000);
}

/// The top-level headings that pulldown-cmark finds: levels and byte offsets.
fn reference(text: &str, options: Options) -> Vec<(u8, usize)> {
    let mut depth = 0;
    let mut found = Vec::new();
    for (event, range) in FullParser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                if let (Tag::Heading { level, .. }, 0) = (tag, depth) {
                    found.push((level as u8, range.start));
                }
                depth += 1;
            }
            Event::End(_) => depth -= 1,
            _ => {}
        }
    }
    found
}

fn headings_found(text: &str) -> Vec<(u8, usize)> {
    let indent = |at: usize| text.get(at..).map_or(0, |tail| tail.len() - tail.trim_start().len());
    let parsed = Markdown.parse(&text.into()).unwrap();
    let heading = |block: lkr_domain::Block| match block.kind {
        BlockKind::Heading { level, .. } => Some((level, block.range.start + indent(block.range.start))),
        _ => None,
    };
    parsed.blocks.into_iter().filter_map(heading).collect()
}

#[test]
fn headings_agree_with_pulldown_cmark_on_real_documents() {
    let Some(path) = crate::conformance::test_data("gitlab_handbook/docs.jsonl") else {
        return;
    };
    let documents = std::fs::read_to_string(path).unwrap();
    let options = Options::ENABLE_YAML_STYLE_METADATA_BLOCKS | Options::ENABLE_TABLES;
    for line in documents.lines() {
        let document: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = document["text"].as_str().unwrap();
        assert_eq!(headings_found(text), reference(text, options), "{}", document["_id"]);
    }
}

proptest! {
    #[test]
    fn headings_agree_with_pulldown_cmark_on_simple_markup(
        lines in prop::collection::vec(
            prop_oneof!["#{1,7}( [a-z]{1,3})?", "[a-z]{1,4}( [a-z]{1,4})?", "={1,3}", "-{3,4}", "```", "~~~", "",
                "> [a-z]", "[*+] [a-z]", "    [a-z]", "  [a-z]"],
            0..12,
        ),
    ) {
        // The text comes first, so that nothing is front matter.
        let text = format!("a\n\n{}", lines.join("\n"));
        prop_assert_eq!(headings_found(&text), reference(&text, Options::empty()), "{:?}", text);
    }
}

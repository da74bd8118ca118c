//! The conformance suite of parsers. [`parser_conformance!`](crate::parser_conformance) makes a test of each case.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use lkr_domain::{Block, BlockKind, Parsed};

use crate::{Parser, Source};

/// Makes one test of each case of the suite for the parser that the expression creates.
#[macro_export]
macro_rules! parser_conformance {
    ($parser:expr) => {
        $crate::parser_conformance!(@ $parser,
            empty_input_has_no_blocks, blank_input_has_no_blocks, plain_words_are_in_blocks,
            all_line_endings_are_equal, huge_heading_is_accepted, wide_characters_are_not_split,
            adversarial_markup_is_parsed,
            deep_nesting_is_parsed, binary_input_does_not_panic, equal_input_gives_equal_output,
        );
    };
    (@ $parser:expr, $($case:ident,)*) => {
        mod conformance {
            use super::*;
            $(#[test] fn $case() { $crate::conformance::$case(&$parser); })*
        }
    };
}

/// Asserts that the blocks of a result are ordered, disjoint, inside the text, on character boundaries and not blank.
pub fn assert_well_formed(parsed: &Parsed) {
    let mut end = 0;
    for block in &parsed.blocks {
        assert!(block.range.start >= end, "blocks overlap or are out of order at byte {end}");
        assert!(block.range.end <= parsed.text.len(), "a block ends beyond the text: {:?}", block.range);
        let text = parsed.text.get(block.range.clone());
        assert!(text.is_some(), "a block cuts a character: {:?}", block.range);
        assert!(text.is_some_and(|text| !text.trim().is_empty()), "a block is blank: {:?}", block.range);
        if let BlockKind::Heading { level, title } = &block.kind {
            assert!(*level >= 1, "levels count from 1");
            assert_eq!(title.trim(), title, "a title has white space at its ends");
        }
        assert!(block.page.is_none_or(|page| page >= 1), "pages count from 1");
        end = block.range.end;
    }
}

/// A file or folder below `data` of the real data. `None`, with a visible line, if it is absent; a failure in CI.
#[must_use]
pub fn test_data(path: &str) -> Option<PathBuf> {
    lkr_test_support::real_data(&format!("data/{path}"))
}

/// Parses every file of `folder` with `extension`, and compares the results with the files `<name>.expected.txt`.
///
/// # Panics
/// If a result differs, or no file has the extension.
#[track_caller]
pub fn assert_fixtures(parser: &dyn Parser, folder: &str, extension: &str) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths
        .retain(|path| path.extension().is_some_and(|found| found == extension) && !is_expected_output(path));
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no files with the extension {extension}");
    for path in paths {
        let bytes = fs::read(&path).unwrap_or_default();
        let file_name = path.file_name().and_then(|name| name.to_str());
        let parsed = parser.parse(&Source { file_name, ..Source::new(&bytes) });
        assert!(parsed.is_ok(), "{} was rejected: {parsed:?}", path.display());
        assert_expected(&parsed.unwrap_or_default(), &path);
    }
}

fn is_expected_output(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.ends_with(".expected.txt"))
}

/// Compares a result with the file `<source>.expected.txt`. With the environment variable `UPDATE_EXPECT`, writes the
/// file instead.
///
/// # Panics
/// If they differ, or the file is absent.
#[track_caller]
pub fn assert_expected(parsed: &Parsed, source: &Path) {
    assert_well_formed(parsed);
    let path = PathBuf::from(format!("{}.expected.txt", source.display()));
    let found = describe(parsed);
    if env::var_os("UPDATE_EXPECT").is_some() {
        assert!(fs::write(&path, &found).is_ok(), "{} cannot be written", path.display());
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, expected, "{} differs; run with UPDATE_EXPECT=1 to rewrite it", path.display());
}

/// A result as text: for each block, a line with its properties and its text; then the warnings.
fn describe(parsed: &Parsed) -> String {
    let block = |block: &Block| {
        let kind = match &block.kind {
            BlockKind::Heading { level, title } => format!("heading {level}: {title}"),
            BlockKind::Paragraph => "paragraph".to_owned(),
            BlockKind::List => "list".to_owned(),
            BlockKind::Table => "table".to_owned(),
            BlockKind::TableHeader => "table header".to_owned(),
            BlockKind::Code => "code".to_owned(),
        };
        let page = block.page.map(|page| format!(", page {page}")).unwrap_or_default();
        let furniture = if block.furniture { ", furniture" } else { "" };
        let text = parsed.text.get(block.range.clone()).unwrap_or_default();
        format!("[{kind}{page}{furniture}]\n{}\n\n", text.replace('\r', "\\r"))
    };
    let blocks: String = parsed.blocks.iter().map(block).collect();
    let warnings: String =
        parsed.warnings.iter().map(|warning| format!("[warning]\n{warning}\n\n")).collect();
    blocks + &warnings
}

/// Parses `bytes`. The parser may reject them, but must not panic.
fn parse(parser: &dyn Parser, bytes: &[u8]) -> Option<Parsed> {
    let parsed = parser.parse(&Source::new(bytes)).ok()?;
    assert_well_formed(&parsed);
    Some(parsed)
}

/// An empty source has no blocks.
pub fn empty_input_has_no_blocks(parser: &dyn Parser) {
    assert!(parse(parser, b"").is_none_or(|parsed| parsed.blocks.is_empty()));
}

/// A source of white space has no blocks.
pub fn blank_input_has_no_blocks(parser: &dyn Parser) {
    for blank in [" ", "\n", "\r\n\t \r\n", "\u{3000}\n\u{a0}"] {
        assert!(parse(parser, blank.as_bytes()).is_none_or(|parsed| parsed.blocks.is_empty()), "{blank:?}");
    }
}

/// The words of a source are in the text, and in a block.
pub fn plain_words_are_in_blocks(parser: &dyn Parser) {
    let Some(parsed) = parse(parser, b"One fine day.\n\nAnother one.\n") else {
        return;
    };
    for words in ["One fine day.", "Another one."] {
        let at = parsed.text.find(words).unwrap_or(usize::MAX);
        assert!(parsed.blocks.iter().any(|block| block.range.contains(&at)), "no block contains {words:?}");
    }
}

/// LF, CR LF and CR all end lines.
pub fn all_line_endings_are_equal(parser: &dyn Parser) {
    let count = |text: &str| parse(parser, text.as_bytes()).map(|parsed| parsed.blocks.len());
    assert_eq!(count("One.\n\nTwo.\n"), count("One.\r\n\r\nTwo.\r\n"));
    assert_eq!(count("One.\n\nTwo.\n"), count("One.\r\rTwo.\r"));
}

/// A heading of any length is accepted.
pub fn huge_heading_is_accepted(parser: &dyn Parser) {
    let words = "very long ".repeat(100_000);
    for text in
        [format!("# {words}\n\ntext"), format!("{words}\n===\n\ntext"), format!("<h1>{words}</h1>text")]
    {
        parse(parser, text.as_bytes());
    }
}

/// No character of any width is split.
pub fn wide_characters_are_not_split(parser: &dyn Parser) {
    for text in [
        "# Über 🏔\n\nStürze 🇳🇴 Wasser.\n",
        "東京\n===\n\n- 塔\n- 寺\u{3000}\n",
        "e\u{301}\u{301}\u{301}\n\n\u{200d}\u{feff}\n",
        "\u{feff}# bom\n\0\u{1}\u{85}\u{2028}x",
        "नमस्ते\u{2029}دنیا\n",
    ] {
        parse(parser, text.as_bytes());
    }
}

/// Parses markup that takes some parsers quadratic time.
pub fn adversarial_markup_is_parsed(parser: &dyn Parser) {
    let units = [
        "[",
        "![",
        "](",
        "*_",
        "`",
        "``` ",
        "<",
        "<!--",
        "&#",
        "> ",
        "- ",
        "1. ",
        "|",
        "| - ",
        "#",
        "# ",
        "=\n",
        "---\n",
        "\\",
        "~~",
        "[a]: b\n",
        "\t",
        "{",
        "$",
        "a**b",
        "_ ",
        "\n\n",
        "\r",
        "- a\n",
        "<a ",
        "<div>\n",
        "```\n~~~\n",
    ];
    for unit in units {
        parse(parser, unit.repeat(200_000 / unit.len()).as_bytes());
    }
}

/// Parses nesting that overflows the stack of some parsers.
pub fn deep_nesting_is_parsed(parser: &dyn Parser) {
    let quotes: String = (1..500).map(|depth| format!("{}x\n", "> ".repeat(depth))).collect();
    let lists: String = (0..500).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
    for text in
        [quotes, lists, "<div>".repeat(50_000), "(".repeat(100_000), "[".repeat(50_000) + &"]".repeat(50_000)]
    {
        parse(parser, text.as_bytes());
    }
}

/// Bytes that are not text are rejected or parsed without a panic.
pub fn binary_input_does_not_panic(parser: &dyn Parser) {
    let all: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let mixed: Vec<u8> = (0_u32..4096).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in
        [&all[..], &mixed, b"\xff", b"\xef\xbb", b"\xfe\xff\0a", b"# \xc3\x28", b"%PDF-1.7", b"PK\x03\x04"]
    {
        parse(parser, bytes);
    }
}

/// Equal sources have equal results.
pub fn equal_input_gives_equal_output(parser: &dyn Parser) {
    let text = "---\na: b\n---\n# A\n\n- b\n\n| c | d |\n|---|---|\n\n```\ne\n```\n";
    assert_eq!(parse(parser, text.as_bytes()), parse(parser, text.as_bytes()));
}

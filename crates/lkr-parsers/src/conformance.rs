//! The suite that every parser has to pass; [`parser_conformance!`](crate::parser_conformance) makes a test of each
//! case.

use lkr_domain::{BlockKind, Parsed};

use crate::{Parser, Source};

/// Makes one test of each case of the suite, against the parser that the expression makes.
#[macro_export]
macro_rules! parser_conformance {
    ($parser:expr) => {
        $crate::parser_conformance!(@ $parser,
            empty_input, blank_input, plain_words, line_ends, huge_heading, many_scripts, hostile_mark_up,
            deep_nesting, not_a_text, equal_input_equal_output,
        );
    };
    (@ $parser:expr, $($case:ident,)*) => {
        mod conformance {
            use super::*;
            $(#[test] fn $case() { $crate::conformance::$case(&$parser); })*
        }
    };
}

/// Asserts what holds of every result: blocks in order, apart, inside the text, on character boundaries, not blank.
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

/// Parses `bytes`, which may be refused but may do no harm.
fn parse(parser: &dyn Parser, bytes: &[u8]) -> Option<Parsed> {
    let parsed = parser.parse(&Source::new(bytes)).ok()?;
    assert_well_formed(&parsed);
    Some(parsed)
}

/// Nothing has no blocks.
pub fn empty_input(parser: &dyn Parser) {
    assert!(parse(parser, b"").is_none_or(|parsed| parsed.blocks.is_empty()));
}

/// White space has no blocks.
pub fn blank_input(parser: &dyn Parser) {
    for blank in [" ", "\n", "\r\n\t \r\n", "\u{3000}\n\u{a0}"] {
        assert!(parse(parser, blank.as_bytes()).is_none_or(|parsed| parsed.blocks.is_empty()), "{blank:?}");
    }
}

/// Words that come in are in the text, and in a block.
pub fn plain_words(parser: &dyn Parser) {
    let Some(parsed) = parse(parser, b"One fine day.\n\nAnother one.\n") else {
        return;
    };
    for words in ["One fine day.", "Another one."] {
        let at = parsed.text.find(words).unwrap_or(usize::MAX);
        assert!(parsed.blocks.iter().any(|block| block.range.contains(&at)), "no block holds {words:?}");
    }
}

/// All line ends are line ends.
pub fn line_ends(parser: &dyn Parser) {
    let count = |text: &str| parse(parser, text.as_bytes()).map(|parsed| parsed.blocks.len());
    assert_eq!(count("One.\n\nTwo.\n"), count("One.\r\n\r\nTwo.\r\n"));
    assert_eq!(count("One.\n\nTwo.\n"), count("One.\r\rTwo.\r"));
}

/// A heading of any length is read.
pub fn huge_heading(parser: &dyn Parser) {
    let words = "very long ".repeat(100_000);
    for text in
        [format!("# {words}\n\ntext"), format!("{words}\n===\n\ntext"), format!("<h1>{words}</h1>text")]
    {
        parse(parser, text.as_bytes());
    }
}

/// Characters of every width are cut nowhere.
pub fn many_scripts(parser: &dyn Parser) {
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

/// Mark-up that has cost other parsers quadratic time.
pub fn hostile_mark_up(parser: &dyn Parser) {
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

/// Nesting that has ended the stacks of other parsers.
pub fn deep_nesting(parser: &dyn Parser) {
    let quotes: String = (1..500).map(|depth| format!("{}x\n", "> ".repeat(depth))).collect();
    let lists: String = (0..500).map(|depth| format!("{}- x\n", "  ".repeat(depth))).collect();
    for text in
        [quotes, lists, "<div>".repeat(50_000), "(".repeat(100_000), "[".repeat(50_000) + &"]".repeat(50_000)]
    {
        parse(parser, text.as_bytes());
    }
}

/// Bytes that are no text are refused or read, never a panic.
pub fn not_a_text(parser: &dyn Parser) {
    let all: Vec<u8> = (0..=255).cycle().take(4096).collect();
    let stirred: Vec<u8> = (0_u32..4096).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    for bytes in
        [&all[..], &stirred, b"\xff", b"\xef\xbb", b"\xfe\xff\0a", b"# \xc3\x28", b"%PDF-1.7", b"PK\x03\x04"]
    {
        parse(parser, bytes);
    }
}

/// The same source has the same result.
pub fn equal_input_equal_output(parser: &dyn Parser) {
    let text = "---\na: b\n---\n# A\n\n- b\n\n| c | d |\n|---|---|\n\n```\ne\n```\n";
    assert_eq!(parse(parser, text.as_bytes()), parse(parser, text.as_bytes()));
}

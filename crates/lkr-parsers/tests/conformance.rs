//! Runs the conformance suite of parsers, and parses arbitrary text.

use lkr_parsers::{
    Markdown, PlainText,
    conformance::{assert_fixtures, assert_well_formed},
};
use proptest::prelude::*;

mod plain_text {
    use super::PlainText;
    lkr_parsers::parser_conformance!(PlainText);
}

mod markdown {
    use super::Markdown;
    lkr_parsers::parser_conformance!(Markdown);
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

#[test]
fn plain_text_files_parse_to_expected_blocks() {
    assert_fixtures(&PlainText, FIXTURES, "txt");
}

#[test]
fn markdown_files_parse_to_expected_blocks() {
    assert_fixtures(&Markdown, FIXTURES, "md");
}

proptest! {
    #[test]
    fn arbitrary_text_is_unchanged(text in "\\PC*|[ \t\r\n#=>*`~|<!a-]{0,80}") {
        for parser in [&PlainText as &dyn lkr_parsers::Parser, &Markdown] {
            let parsed = parser.parse(&text.as_str().into()).unwrap();
            assert_well_formed(&parsed);
            prop_assert_eq!(&parsed.text, &text);
            // Only white space, byte order marks and thematic breaks are outside of blocks.
            let mut outside = text.clone();
            for block in parsed.blocks.iter().rev() {
                outside.replace_range(block.range.clone(), "");
            }
            prop_assert!(outside.chars().all(|c| c.is_whitespace() || "*-_\u{feff}".contains(c)), "{:?}", outside);
        }
    }
}

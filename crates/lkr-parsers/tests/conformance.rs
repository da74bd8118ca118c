//! The parsers of this crate against the suite, and against arbitrary text.

use lkr_parsers::{Markdown, PlainText, conformance::assert_well_formed};
use proptest::prelude::*;

mod plain_text {
    use super::PlainText;
    lkr_parsers::parser_conformance!(PlainText);
}

mod markdown {
    use super::Markdown;
    lkr_parsers::parser_conformance!(Markdown);
}

proptest! {
    #[test]
    fn any_text_is_kept(text in "\\PC*|[ \t\r\n#=>*`~|<!a-]{0,80}") {
        for parser in [&PlainText as &dyn lkr_parsers::Parser, &Markdown] {
            let parsed = parser.parse(&text.as_str().into()).unwrap();
            assert_well_formed(&parsed);
            prop_assert_eq!(&parsed.text, &text);
            // All that stands outside blocks is white space, a byte order mark or a thematic break.
            let mut outside = text.clone();
            for block in parsed.blocks.iter().rev() {
                outside.replace_range(block.range.clone(), "");
            }
            prop_assert!(outside.chars().all(|c| c.is_whitespace() || "*-_\u{feff}".contains(c)), "{:?}", outside);
        }
    }
}

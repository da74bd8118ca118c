//! Runs the conformance suite of parsers, and parses real pages.

use std::fs;

use lkr_parsers::{
    Parser, Source,
    conformance::{assert_fixtures, assert_well_formed, test_data},
};
use lkr_parsers_html::{Article, PlainHtml};
use proptest::prelude::*;

mod article {
    use super::Article;
    lkr_parsers::parser_conformance!(Article);
}

mod html2text {
    use super::PlainHtml;
    lkr_parsers::parser_conformance!(PlainHtml);
}

#[test]
fn real_pages_are_parsed() {
    let Some(folder) = test_data("files/html") else {
        return;
    };
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for parser in [&Article as &dyn Parser, &PlainHtml] {
            assert_well_formed(&parser.parse(&Source::new(&bytes)).unwrap());
        }
    }
}

#[test]
fn html_files_parse_to_expected_blocks() {
    assert_fixtures(&Article, concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"), "html");
}

proptest! {
    #[test]
    fn arbitrary_markup_is_parsed(
        parts in prop::collection::vec(
            prop_oneof![
                "[a-z]{1,4} ?",
                "</?(div|p|b|a|ul|ol|li|table|tr|td|h1|h3|pre|br|title|svg|select|option|template|nav|form)>",
                "<(ol start|td colspan|p hidden|p style)=['\"]?[0-9a-z:]{0,5}",
                "<!--|-->|&[a-z#0-9]{0,4};?|<|>",
            ],
            0..60,
        ),
    ) {
        for parser in [&Article as &dyn Parser, &PlainHtml] {
            if let Ok(parsed) = parser.parse(&parts.concat().as_str().into()) {
                assert_well_formed(&parsed);
            }
        }
    }

    #[test]
    fn all_visible_words_are_kept(
        parts in prop::collection::vec(
            prop_oneof!["[a-z]{3,5} ", "<(div|p|b|ul|li|table|tr|td|h2|pre|section|nav|span)>", "</(div|p|ul|table)>"],
            0..60,
        ),
    ) {
        let parsed = Article.parse(&parts.concat().as_str().into()).unwrap();
        let words = |text: &str| {
            let mut words: Vec<String> =
                text.split(|c: char| !c.is_ascii_lowercase()).filter(|word| !word.is_empty()).map(str::to_owned).collect();
            words.sort();
            words
        };
        let expected: String = parts.iter().filter(|part| !part.starts_with('<')).cloned().collect();
        prop_assert_eq!(words(&parsed.text), words(&expected));
    }
}

//! The parsers of this crate against the suite, and against real files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::{fs, path::Path};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Parser, Result, Source, conformance::assert_well_formed};
use lkr_parsers_docx::{DocxXml, OfficeOxide};
use proptest::prelude::*;

/// Gives a parser what the suite has for it as a document: a paragraph for each one of a text.
#[derive(Debug)]
struct Packed<P>(P);

impl<P: Parser> Parser for Packed<P> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let Ok(text) = std::str::from_utf8(source.bytes) else {
            return self.0.parse(source);
        };
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
        let body: String = escaped.split("\n\n").map(common::plain).collect();
        self.0.parse(&Source::new(&common::docx(&body, &[])))
    }
}

mod zip_xml {
    use super::{DocxXml, Packed};
    lkr_parsers::parser_conformance!(Packed(DocxXml));
}

mod office_oxide {
    use super::{OfficeOxide, Packed};
    lkr_parsers::parser_conformance!(Packed(OfficeOxide));
}

#[test]
fn bytes_that_are_no_archive_are_refused() {
    for parser in [&DocxXml as &dyn Parser, &OfficeOxide] {
        for bytes in [&b""[..], b"PK\x03\x04", b"words", b"PK\x05\x06"] {
            assert!(parser.parse(&Source::new(bytes)).is_err());
        }
    }
}

#[test]
fn both_parsers_find_the_same_words() {
    let cell = |text| format!("<w:tc>{}</w:tc>", common::plain(text));
    let table = format!("<w:tbl><w:tr>{}{}</w:tr></w:tbl>", cell("a"), cell("b"));
    let heading = "<w:p><w:pPr><w:pStyle w:val=\"h\"/></w:pPr><w:r><w:t>Head</w:t></w:r></w:p>";
    let styles = "<w:styles><w:style w:type=\"paragraph\" w:styleId=\"h\"><w:name w:val=\"heading 2\"/></w:style></w:styles>";
    let bytes = common::docx(&(heading.to_owned() + &common::plain("words") + &table), &[("styles", styles)]);
    for parser in [&DocxXml as &dyn Parser, &OfficeOxide] {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        assert_eq!(parsed.text, "Head\n\nwords\n\na | b", "{}", parser.name());
        assert_eq!(
            parsed.blocks.first().unwrap().kind,
            BlockKind::Heading { level: 2, title: "Head".into() }
        );
        assert_eq!(parsed.blocks.last().unwrap().kind, BlockKind::Table);
    }
}

#[test]
fn real_files_are_read() {
    let Some(folder) = lkr_parsers::conformance::test_data("files/docx") else { return };
    let mut refused = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for parser in [&DocxXml as &dyn Parser, &OfficeOxide] {
            match parser.parse(&Source::new(&bytes)) {
                Ok(parsed) => assert_well_formed(&parsed),
                Err(_) => refused += 1,
            }
        }
    }
    // Two files need a password.
    assert!(refused <= 4, "{refused} refused");
}

proptest! {
    #[test]
    fn any_xml_is_read(
        parts in prop::collection::vec(
            prop_oneof![
                "[a-z]{1,3}",
                "</?w:(p|r|t|tbl|tr|tc|pPr|rPr|del|br|txbxContent)>",
                "</?mc:(AlternateContent|Choice|Fallback)>",
                "&[a-z#0-9]{0,4};?",
            ],
            0..40,
        ),
    ) {
        if let Ok(parsed) = DocxXml.parse(&Source::new(&common::docx(&parts.concat(), &[]))) {
            assert_well_formed(&parsed);
        }
    }
}

//! Runs the conformance suite of parsers, and parses real files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::{fs, path::Path};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{
    ErrorKind, Parser, Result, Source,
    conformance::{assert_expected, assert_well_formed, test_data},
};
use lkr_parsers_docx::{DocxXml, OfficeOxide};
use proptest::prelude::*;

/// Converts the texts of the suite to DOCX files, with a paragraph for each paragraph of a text.
#[derive(Debug)]
struct AsDocx<P>(P);

impl<P: Parser> Parser for AsDocx<P> {
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
    use super::{AsDocx, DocxXml};
    lkr_parsers::parser_conformance!(AsDocx(DocxXml));
}

mod office_oxide {
    use super::{AsDocx, OfficeOxide};
    lkr_parsers::parser_conformance!(AsDocx(OfficeOxide));
}

#[test]
fn bytes_that_are_not_an_archive_are_rejected() {
    for parser in [&DocxXml as &dyn Parser, &OfficeOxide] {
        for bytes in [&b""[..], b"PK\x03\x04", b"words", b"PK\x05\x06"] {
            assert!(parser.parse(&Source::new(bytes)).is_err());
        }
    }
}

#[test]
fn both_parsers_find_the_same_text() {
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
fn real_files_are_parsed() {
    let Some(folder) = test_data("files/docx") else {
        return;
    };
    let mut rejected = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for parser in [&DocxXml as &dyn Parser, &OfficeOxide] {
            match parser.parse(&Source::new(&bytes)) {
                Ok(parsed) => assert_well_formed(&parsed),
                Err(error) if error.kind() == ErrorKind::Pictures => {}
                Err(_) => rejected += 1,
            }
        }
    }
    // Two files are protected by a password.
    assert!(rejected <= 4, "{rejected} rejected");
}

/// Parses a document of this body, and compares the result with `tests/fixtures/<name>.expected.txt`.
#[track_caller]
fn assert_body(name: &str, parts: &[(&str, &str)]) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures")).join(name);
    let body = fs::read_to_string(&path).unwrap();
    let parsed = DocxXml.parse(&Source::new(&common::docx(&body, parts))).unwrap();
    assert_expected(&parsed, &path);
}

const STYLES: &str = "<w:styles>\
    <w:style w:type=\"paragraph\" w:styleId=\"title\"><w:name w:val=\"Title\"/></w:style>\
    <w:style w:type=\"paragraph\" w:styleId=\"h2\"><w:name w:val=\"heading 2\"/></w:style></w:styles>";

#[test]
fn report_parses_to_expected_blocks() {
    let notes = "<w:footnotes><w:footnote w:id=\"1\"><w:p><w:r><w:t>Measured at low water.</w:t></w:r></w:p></w:footnote></w:footnotes>";
    assert_body("report.xml", &[("styles", STYLES), ("footnotes", notes)]);
}

#[test]
fn lists_parse_to_expected_blocks() {
    let numbering = "<w:numbering><w:abstractNum w:abstractNumId=\"1\">\
        <w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"decimal\"/><w:lvlText w:val=\"%1.\"/></w:lvl>\
        <w:lvl w:ilvl=\"1\"><w:numFmt w:val=\"lowerLetter\"/><w:lvlText w:val=\"%2)\"/></w:lvl></w:abstractNum>\
        <w:num w:numId=\"1\"><w:abstractNumId w:val=\"1\"/></w:num>\
        <w:num w:numId=\"2\"><w:abstractNumId w:val=\"1\"/><w:lvlOverride w:ilvl=\"0\"><w:startOverride w:val=\"4\"/>\
        <w:lvl w:ilvl=\"0\"><w:numFmt w:val=\"lowerRoman\"/><w:lvlText w:val=\"Task %1:\"/></w:lvl></w:lvlOverride></w:num></w:numbering>";
    assert_body("lists.xml", &[("numbering", numbering)]);
}

#[test]
fn hidden_text_parses_to_expected_blocks() {
    assert_body("hidden.xml", &[("styles", STYLES)]);
}

proptest! {
    #[test]
    fn arbitrary_xml_is_parsed(
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

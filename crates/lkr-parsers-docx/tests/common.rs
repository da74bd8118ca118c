//! Builds DOCX files for tests.
#![allow(dead_code, reason = "no test target uses all helpers")]
#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{Cursor, Write};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Error, Parser, Source};
use lkr_parsers_docx::DocxXml;
use zip::{ZipWriter, write::SimpleFileOptions};

const SPACES: &str = "xmlns:w=\"http://schemas.openxmlformats.org/wordprocessingml/2006/main\" \
    xmlns:m=\"http://schemas.openxmlformats.org/officeDocument/2006/math\" \
    xmlns:wps=\"http://schemas.microsoft.com/office/word/2010/wordprocessingShape\" \
    xmlns:a=\"http://schemas.openxmlformats.org/drawingml/2006/main\" \
    xmlns:pic=\"http://schemas.openxmlformats.org/drawingml/2006/picture\" \
    xmlns:v=\"urn:schemas-microsoft-com:vml\" \
    xmlns:mc=\"http://schemas.openxmlformats.org/markup-compatibility/2006\"";

const OFFICE: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// A ZIP archive with these entries.
pub(crate) fn archive(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// A DOCX file with this body and these parts, which are named by their roles.
pub(crate) fn docx(body: &str, parts: &[(&str, &str)]) -> Vec<u8> {
    let document = format!("<w:document {SPACES}><w:body>{body}</w:body></w:document>");
    file(document.as_bytes(), parts)
}

/// A DOCX file with these bytes as its main part.
pub(crate) fn file(document: &[u8], parts: &[(&str, &str)]) -> Vec<u8> {
    let root = relations([("officeDocument", "word/document.xml")].into_iter());
    let names: Vec<String> = parts.iter().map(|(role, _)| format!("{role}.xml")).collect();
    let beside = relations(parts.iter().zip(&names).map(|((role, _), name)| (*role, name.as_str())));
    let types = "<Types xmlns=\"http://schemas.openxmlformats.org/package/2006/content-types\">\
        <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
        <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
        <Override PartName=\"/word/document.xml\" ContentType=\"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml\"/>\
        </Types>";
    let mut entries: Vec<(String, Vec<u8>)> = vec![
        ("[Content_Types].xml".into(), types.into()),
        ("_rels/.rels".into(), root.into()),
        ("word/document.xml".into(), document.into()),
        ("word/_rels/document.xml.rels".into(), beside.into()),
    ];
    for ((_, content), name) in parts.iter().zip(&names) {
        let content = content.replacen('>', &format!(" {SPACES}>"), 1);
        entries.push((format!("word/{name}"), content.into()));
    }
    let entries: Vec<(&str, &[u8])> = entries.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
    archive(&entries)
}

fn relations<'a>(relations: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let relations: String = relations
        .enumerate()
        .map(|(at, (role, target))| {
            format!("<Relationship Id=\"r{at}\" Type=\"{OFFICE}/{role}\" Target=\"{target}\"/>")
        })
        .collect();
    format!(
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">{relations}</Relationships>"
    )
}

/// A paragraph.
pub(crate) fn plain(text: &str) -> String {
    format!("<w:p><w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r></w:p>")
}

/// Parses a file with `DocxXml`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Parsed, Error> {
    DocxXml.parse(&Source::new(bytes))
}

/// Asserts the blocks in short form: a letter for the kind, the level of a heading, the text.
#[track_caller]
pub(crate) fn check(bytes: &[u8], expected: &[&str]) {
    let parsed = parse(bytes).unwrap();
    let describe = |block: &lkr_domain::Block| {
        let text = parsed.text.get(block.range.clone()).unwrap();
        match &block.kind {
            BlockKind::Heading { level, title } => format!("h{level} {title}"),
            BlockKind::Paragraph => format!("p {text}"),
            BlockKind::List => format!("l {text}"),
            BlockKind::Table => format!("t {text}"),
            BlockKind::TableHeader => format!("th {text}"),
            BlockKind::Code => format!("c {text}"),
        }
    };
    assert_eq!(parsed.blocks.iter().map(describe).collect::<Vec<_>>(), expected);
}

/// A paragraph in a style.
pub(crate) fn styled(style: &str, text: &str) -> String {
    format!("<w:p><w:pPr><w:pStyle w:val=\"{style}\"/></w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>")
}

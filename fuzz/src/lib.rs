#![doc = include_str!("../README.md")]

use std::{
    cell::RefCell,
    io::{Cursor, Write},
    panic::{self, AssertUnwindSafe},
    process,
    time::Duration,
};

use lkr_parsers::{Clock, Deadline, Parser, Source, conformance::assert_well_formed};
use zip::{ZipWriter, write::SimpleFileOptions};

/// When a parser should answer what it has. libFuzzer's own limit is well above it.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// What the last panic said.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps panics that a parser catches from ending the run. What libFuzzer's binding sets up instead aborts at once.
pub fn allow_caught_panics() {
    panic::set_hook(Box::new(|panic| SAID.set(panic.to_string())));
}

/// Parses `bytes`, which may be refused; what is read is well formed.
pub fn check(parser: &dyn Parser, bytes: &[u8]) {
    let deadline = Some(Deadline::after(Clock::Wall, PATIENCE));
    let source = Source { deadline, ..Source::new(bytes) };
    let checked = panic::catch_unwind(AssertUnwindSafe(|| {
        if let Ok(parsed) = parser.parse(&source) {
            assert_well_formed(&parsed);
        }
    }));
    if checked.is_err() {
        eprintln!("{}", SAID.take());
        process::abort();
    }
}

/// `bytes` as they are where they begin as an archive; else an archive whose main part they are, so that what is
/// changed is the document rather than its compression.
pub fn as_docx(bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(b"PK") {
        return bytes.to_vec();
    }
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in PARTS.into_iter().chain([(MAIN_PART, bytes)]) {
        let stored = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        archive.start_file(name, stored).expect("a name that is free");
        archive.write_all(content).expect("memory takes it");
    }
    archive.finish().expect("memory takes it").into_inner()
}

const MAIN_PART: &str = "word/document.xml";

/// What a document needs beside its main part.
const PARTS: [(&str, &[u8]); 3] = [
    (
        "[Content_Types].xml",
        br#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#,
    ),
    (
        "_rels/.rels",
        br#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>"#,
    ),
    (
        "word/styles.xml",
        br#"<?xml version="1.0"?><w:styles xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:style w:type="paragraph" w:styleId="H1"><w:name w:val="heading 1"/></w:style><w:style w:type="paragraph" w:styleId="Sub"><w:basedOn w:val="H1"/></w:style></w:styles>"#,
    ),
];

//! Real files, if they are available. Every successful result must be well-formed.

use std::{fs, time::Duration};

use lkr_parsers::{Clock, Deadline, ErrorKind, Source};
use lkr_parsers_pdf::PdfOptions;

#[test]
fn real_files_parse_or_are_rejected() {
    let Some(folder) = lkr_parsers::conformance::test_data("files/pdf") else { return };
    let entries = fs::read_dir(folder).unwrap();
    let files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    for parser in crate::common::parsers(&PdfOptions::default()) {
        let mut read = 0;
        for file in &files {
            let bytes = fs::read(file).unwrap();
            let deadline = Some(Deadline::after(Clock::Wall, Duration::from_secs(2)));
            match parser.parse(&Source { deadline, ..Source::new(&bytes) }) {
                Ok(parsed) => {
                    lkr_parsers::conformance::assert_well_formed(&parsed);
                    read += 1;
                }
                Err(error) if error.kind() == ErrorKind::Pictures => read += 1,
                Err(_) => {}
            }
        }
        assert!(read * 10 > files.len() * 9, "{} reads {read} of {} files", parser.name(), files.len());
    }
}

/// The files that need a password, by the tags of the references.
#[test]
fn real_files_with_a_password_are_refused_as_encrypted() {
    let Some(folder) = lkr_parsers::conformance::test_data("files") else { return };
    let tags = fs::read_to_string(folder.join("ref/tags.tsv")).unwrap();
    let protected = tags.lines().filter_map(|line| {
        let (name, tags) = line.split_once('\t')?;
        tags.split(',').any(|tag| tag == "needs_password").then_some(name)
    });
    for name in protected.collect::<Vec<_>>() {
        let bytes = fs::read(folder.join("pdf").join(name)).unwrap();
        for parser in crate::common::parsers(&PdfOptions::default()) {
            match parser.parse(&Source::new(&bytes)) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Encrypted, "{}: {name}: {error}", parser.name());
                }
                // PDFium opens some of them with an empty password.
                Ok(_) => assert_eq!(parser.name(), "pdfium", "{name}"),
            }
        }
    }
}

//! Real files, if they are available. Every successful result must be well-formed.

use std::{fs, time::Duration};

use lkr_parsers::{Clock, Deadline, Source};
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
            if let Ok(parsed) = parser.parse(&Source { deadline, ..Source::new(&bytes) }) {
                lkr_parsers::conformance::assert_well_formed(&parsed);
                read += 1;
            }
        }
        assert!(read * 10 > files.len() * 9, "{} reads {read} of {} files", parser.name(), files.len());
    }
}

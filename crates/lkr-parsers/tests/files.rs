//! Real files: their formats, and the encodings of texts.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;

use lkr_parsers::{
    ErrorKind, Format, Markdown, Parser, PlainText, Source, check_format, conformance::test_data,
};

/// The files of a folder with their names; none if the test data is absent.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let Some(path) = test_data(&format!("files/{folder}")) else {
        return Vec::new();
    };
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    };
    fs::read_dir(path).unwrap().map(read).collect()
}

/// The letters and digits of a text.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[test]
fn real_files_match_their_extensions() {
    for folder in ["txt", "md", "html", "pdf", "docx"] {
        let format = Format::from_extension(&format!(".{folder}")).unwrap();
        for (name, bytes) in files(folder) {
            match check_format(format, &bytes) {
                Err(error) if error.kind() != ErrorKind::Encrypted => panic!("{name}: {error}"),
                _ => {}
            }
        }
    }
}

#[test]
fn real_texts_are_decoded() {
    // The references of these two have one character for each byte.
    let byte_references = ["unstr__fake-text-utf-16-be.txt", "unstr__fake-text-utf-32.txt"];
    for (folder, parser) in [("txt", &PlainText as &dyn Parser), ("md", &Markdown)] {
        for (name, bytes) in files(folder) {
            let parsed = parser.parse(&Source { file_name: Some(&name), ..Source::new(&bytes) }).unwrap();
            assert_eq!(parsed.warnings, [""; 0], "{name}");
            let reference = test_data("files/ref/txt").unwrap().join(format!("{name}.txt"));
            if let Ok(expected) = fs::read_to_string(reference)
                && !byte_references.contains(&name.as_str())
            {
                assert_eq!(letters(&parsed.text), letters(&expected), "{name}");
            }
        }
    }
}

//! Real files: what they are named as, and the encodings of texts.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "helpers of tests")]

use std::{fs, path::Path};

use lkr_parsers::{ErrorKind, Format, Markdown, Parser, PlainText, Source, check_format};

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/files");

/// The files of a folder with their names; none, with a word about it, where they are absent.
fn files(folder: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(FILES).join(folder);
    let Ok(entries) = fs::read_dir(&path) else {
        eprintln!("skipped: {} is absent", path.display());
        return Vec::new();
    };
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    };
    entries.map(read).collect()
}

/// Letters and digits of a text, which is what encodings are about.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[test]
fn no_real_file_is_taken_for_another_kind() {
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
    // The references of these two show each of their bytes as a character.
    let odd = ["unstr__fake-text-utf-16-be.txt", "unstr__fake-text-utf-32.txt"];
    for (folder, parser) in [("txt", &PlainText as &dyn Parser), ("md", &Markdown)] {
        for (name, bytes) in files(folder) {
            let parsed = parser.parse(&Source { file_name: Some(&name), ..Source::new(&bytes) }).unwrap();
            assert_eq!(parsed.warnings, [""; 0], "{name}");
            let expected = fs::read_to_string(format!("{FILES}/ref/txt/{name}.txt"));
            if let Ok(expected) = expected
                && !odd.contains(&name.as_str())
            {
                assert_eq!(letters(&parsed.text), letters(&expected), "{name}");
            }
        }
    }
}

//! Writes the text of files, whose names end with `.txt` or `.md`, into a folder.
//!
//! usage: extract FILES… --out DIR
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::{env, fs, path::Path};

use lkr_parsers::{Format, Markdown, Parser, PlainText, Source};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let at = arguments.iter().position(|argument| argument == "--out").ok_or("no --out")?;
    let out = arguments.get(at + 1).ok_or("no folder")?.clone();
    arguments.drain(at..at + 2);
    for path in arguments {
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).ok_or("no file name")?;
        let parser: &dyn Parser = match Format::from_file_name(name) {
            Some(Format::Markdown) => &Markdown,
            _ => &PlainText,
        };
        let bytes = fs::read(&path)?;
        match parser.parse(&Source { file_name: Some(name), ..Source::new(&bytes) }) {
            Ok(parsed) => fs::write(Path::new(&out).join(format!("{name}.txt")), parsed.text)?,
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    Ok(())
}

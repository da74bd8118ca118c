//! Writes the text of PDF files into a folder.
//!
//! usage: extract FILES… --out DIR [--json] [--no-outline] [--plugin lopdf|pdf_oxide|pdfium]
//!
//! With `--json`, it also writes the blocks of each text in the form of `lkr parse --json`. With `--no-outline`, headings are
//! detected by style alone. Warnings and errors go to stderr. `LKR_PDFIUM_LIBRARY` is the path of PDFium's library.
#![allow(clippy::print_stderr, reason = "a command-line program")]

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_domain::{Block, BlockKind};
use lkr_parsers::{Parser, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide, Pdfium};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let out = take_option(&mut arguments, "--out").ok_or("no --out")?;
    let plugin = take_option(&mut arguments, "--plugin").unwrap_or_default();
    let (json, outline) = (take_flag(&mut arguments, "--json"), !take_flag(&mut arguments, "--no-outline"));
    let library = env::var_os("LKR_PDFIUM_LIBRARY");
    let pdfium_library = library.as_ref().map(PathBuf::from);
    let options = PdfOptions { outline, pdfium_library, ..PdfOptions::default() };
    let parser: Arc<dyn Parser> = match plugin.as_str() {
        "lopdf" => Arc::new(Lopdf::new(options)),
        "pdfium" => {
            let library = library.ok_or("no LKR_PDFIUM_LIBRARY")?;
            Arc::new(Pdfium::load(Path::new(&library))?.with_options(options))
        }
        _ => Arc::new(PdfOxide::new(options)),
    };
    for path in arguments {
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).ok_or("no file name")?;
        let bytes = fs::read(&path)?;
        match parser.parse(&Source { file_name: Some(name), ..Source::new(&bytes) }) {
            Ok(parsed) => {
                parsed.warnings.iter().for_each(|warning| eprintln!("{name}: {warning}"));
                if json {
                    let blocks: Vec<_> =
                        parsed.blocks.iter().map(|block| block_json(&parsed.text, block)).collect();
                    let text = serde_json::json!({ "blocks": blocks, "text": parsed.text }).to_string();
                    fs::write(Path::new(&out).join(format!("{name}.json")), text)?;
                }
                fs::write(Path::new(&out).join(format!("{name}.txt")), parsed.text)?;
            }
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    Ok(())
}

fn block_json(text: &str, block: &Block) -> serde_json::Value {
    let (kind, level, title) = match &block.kind {
        BlockKind::Heading { level, title } => ("heading", Some(level), Some(title)),
        BlockKind::Paragraph => ("paragraph", None, None),
        BlockKind::List => ("list", None, None),
        BlockKind::Table => ("table", None, None),
        BlockKind::TableHeader => ("table header", None, None),
        BlockKind::Code => ("code", None, None),
    };
    let chars = |end: usize| text.get(..end).unwrap_or_default().chars().count();
    let (char_start, char_end) = (chars(block.range.start), chars(block.range.end));
    serde_json::json!({
        "kind": kind, "level": level, "title": title, "page": block.page, "furniture": block.furniture,
        "char_start": char_start, "char_end": char_end
    })
}

/// Removes a flag from the arguments and returns whether it was present.
fn take_flag(arguments: &mut Vec<String>, flag: &str) -> bool {
    let length = arguments.len();
    arguments.retain(|argument| argument != flag);
    arguments.len() < length
}

/// Removes an option from the arguments and returns its value.
fn take_option(arguments: &mut Vec<String>, option: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == option)?;
    let value = arguments.get(at + 1).cloned()?;
    arguments.drain(at..at + 2);
    Some(value)
}

//! Writes the text of HTML pages into a folder.
//!
//! usage: extract FILES… --out DIR [--json] [--body] [--plugin article|html2text]
//!
//! With `--body`, furniture is left out. With `--json`, what the texts are made of is written too: a list of `{kind, level, title, page, furniture}`.
#![allow(clippy::print_stderr, reason = "it is a program")]

use std::{env, fs, path::Path};

use lkr_domain::{Block, BlockKind};
use lkr_parsers::{Parser, Source};
use lkr_parsers_html::{Article, PlainHtml};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let out = taken(&mut arguments, "--out").ok_or("no --out")?;
    let plugin = taken(&mut arguments, "--plugin").unwrap_or_default();
    let parser: &dyn Parser = if plugin == PlainHtml.name() { &PlainHtml } else { &Article };
    let (json, body) = (flag(&mut arguments, "--json"), flag(&mut arguments, "--body"));
    for path in arguments {
        let name = Path::new(&path).file_name().and_then(|name| name.to_str()).ok_or("no file name")?;
        let bytes = fs::read(&path)?;
        match parser.parse(&Source { file_name: Some(name), ..Source::new(&bytes) }) {
            Ok(parsed) => {
                let kept = parsed.blocks.iter().filter(|block| !(body && block.furniture));
                let texts: Vec<&str> =
                    kept.filter_map(|block| parsed.text.get(block.range.clone())).collect();
                fs::write(Path::new(&out).join(format!("{name}.txt")), texts.join("\n\n"))?;
                if json {
                    let blocks: Vec<_> = parsed.blocks.iter().map(described).collect();
                    let text = serde_json::to_string(&blocks)?;
                    fs::write(Path::new(&out).join(format!("{name}.json")), text)?;
                }
            }
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
    Ok(())
}

fn described(block: &Block) -> serde_json::Value {
    let (kind, level, title) = match &block.kind {
        BlockKind::Heading { level, title } => ("heading", Some(level), Some(title)),
        BlockKind::Paragraph => ("paragraph", None, None),
        BlockKind::List => ("list", None, None),
        BlockKind::Table => ("table", None, None),
        BlockKind::Code => ("code", None, None),
    };
    serde_json::json!({
        "kind": kind, "level": level, "title": title, "page": block.page, "furniture": block.furniture,
    })
}

/// Takes a flag out of the arguments; whether it was there.
fn flag(arguments: &mut Vec<String>, flag: &str) -> bool {
    let length = arguments.len();
    arguments.retain(|argument| argument != flag);
    arguments.len() < length
}

/// Takes an option and its value out of the arguments.
fn taken(arguments: &mut Vec<String>, option: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == option)?;
    let taken = arguments.get(at + 1).cloned()?;
    arguments.drain(at..at + 2);
    Some(taken)
}

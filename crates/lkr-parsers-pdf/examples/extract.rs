//! Writes what a parser reads in PDF files: FILES… --out DIR [--json DIR] [--engine pdf_oxide|pdfium|lopdf].
#![allow(clippy::print_stderr, reason = "a tool for the command line")]

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lkr_domain::{Block, BlockKind, Parsed};
use lkr_parsers::{Parser, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide, Pdfium};

struct Call {
    files: Vec<PathBuf>,
    out: PathBuf,
    json: Option<PathBuf>,
    engine: String,
}

fn main() -> Result<(), Box<dyn Error>> {
    let call = call()?;
    let parser = parser(&call.engine)?;
    for file in &call.files {
        let bytes = fs::read(file)?;
        let deadline = Instant::now() + Duration::from_secs(15);
        let source = Source { deadline: Some(deadline), ..Source::new(&bytes) };
        match parser.parse(&source) {
            Ok(parsed) => write(&call, file, &parsed)?,
            Err(error) => eprintln!("{}: {:?}: {error}", file.display(), error.kind()),
        }
    }
    Ok(())
}

fn call() -> Result<Call, Box<dyn Error>> {
    let mut call = Call { files: vec![], out: PathBuf::new(), json: None, engine: "pdf_oxide".into() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match word.as_str() {
            "--out" => call.out = value()?.into(),
            "--json" => call.json = Some(value()?.into()),
            "--engine" => call.engine = value()?,
            _ => call.files.push(word.into()),
        }
    }
    Ok(call)
}

fn parser(engine: &str) -> Result<Box<dyn Parser>, Box<dyn Error>> {
    let options = PdfOptions::default();
    Ok(match engine {
        "pdf_oxide" => Box::new(PdfOxide::new(options)),
        "lopdf" => Box::new(Lopdf::new(options)),
        "pdfium" => {
            let path = std::env::var_os("LKR_PDFIUM_LIBRARY").ok_or("LKR_PDFIUM_LIBRARY names no library")?;
            Box::new(Pdfium::load(Path::new(&path))?.with_options(options))
        }
        _ => return Err(format!("no engine has the name {engine}").into()),
    })
}

fn write(call: &Call, file: &Path, parsed: &Parsed) -> Result<(), Box<dyn Error>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    fs::create_dir_all(&call.out)?;
    fs::write(call.out.join(format!("{name}.txt")), &parsed.text)?;
    if let Some(folder) = &call.json {
        fs::create_dir_all(folder)?;
        let blocks: Vec<_> = parsed.blocks.iter().map(|block| json(block, &parsed.text)).collect();
        fs::write(folder.join(format!("{name}.json")), serde_json::to_vec(&blocks)?)?;
    }
    Ok(())
}

fn json(block: &Block, text: &str) -> serde_json::Value {
    let (kind, level, title) = match &block.kind {
        BlockKind::Heading { level, title } => ("heading", Some(*level), Some(title)),
        BlockKind::Paragraph => ("paragraph", None, None),
        BlockKind::List => ("list", None, None),
        BlockKind::Table => ("table", None, None),
        BlockKind::Code => ("code", None, None),
    };
    let text = text.get(block.range.clone());
    serde_json::json!({
        "kind": kind, "level": level, "title": title, "page": block.page, "furniture": block.furniture, "text": text,
    })
}

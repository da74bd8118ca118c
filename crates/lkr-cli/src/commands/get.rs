//! `lkr get`: a document, its text, its chunks or its original file.

use std::{
    fs::File,
    io::{self, IsTerminal as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::{
    commands::{Common, List, documents, query::QueryString},
    exit::usage,
    http::Client,
    program::Program,
    terminal::{Column, Output, Style, clean, field, moment, size},
};

/// The metadata that the server gives a file, which the line about the file shows.
const OF_FILE: [&str; 3] = ["raw_file_path", "original_filename", "original_size_bytes"];

/// The arguments of `lkr get`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The document, by its id, a unique beginning of its id, or its source.
    #[arg(value_name = "DOCUMENT")]
    document: String,
    /// Print its extracted text.
    #[arg(long, conflicts_with_all = ["chunks", "file"])]
    text: bool,
    /// List its chunks.
    #[arg(long, conflicts_with = "file")]
    chunks: bool,
    /// Write its original file.
    #[arg(long)]
    file: bool,
    /// Write its original file to this path, or to the standard output if it is -. [default: its own name, here]
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["text", "chunks"])]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Prints what is asked for, by default the title, metadata and sections.
pub(crate) fn run(args: &Args, program: &Program) -> Result<ExitCode> {
    let output = args.common.output.output();
    let connection = args.common.target.connect(program)?;
    let client = &connection.client;
    let path = format!("/documents/{}", documents::find(client, &args.document)?);
    if args.file || args.out.is_some() {
        save_file(client, &output, &path, args.out.as_deref())?;
    } else if args.chunks {
        chunk_list().print(client, &output, &format!("{path}/chunks"), &QueryString::default(), None)?;
    } else if args.text {
        let text = client.get(&format!("{path}/text"))?.data;
        match output.style {
            Style::Json => output.json(&text)?,
            _ => output.print(&output.shown(&field(&text, "text")))?,
        }
    } else {
        let document = client.get(&path)?.data;
        match output.style {
            Style::Json => output.json(&document)?,
            Style::Names => output.line(&field(document.get("l1").unwrap_or(&Value::Null), "doc_id"))?,
            Style::People => print_document(&output, &document)?,
        }
    }
    connection.close()?;
    Ok(ExitCode::SUCCESS)
}

const fn chunk_list() -> List<'static> {
    List {
        name: "chunk_id",
        columns: &[
            Column::Number("CHUNK"),
            Column::Number("START"),
            Column::Number("END"),
            Column::Text("HEADINGS"),
            Column::Text("TEXT"),
        ],
        row: |chunk| {
            let path = chunk.get("path").and_then(Value::as_array).into_iter().flatten();
            let path: Vec<&str> = path.filter_map(Value::as_str).collect();
            vec![
                field(chunk, "ordinal"),
                field(chunk, "char_start"),
                field(chunk, "char_end"),
                path.join(" › "),
                field(chunk, "text").chars().take(200).collect(),
            ]
        },
    }
}

fn print_document(output: &Output, document: &Value) -> Result<()> {
    let l1 = document.get("l1").unwrap_or(&Value::Null);
    let line = |name: &str, value: String| {
        if value.is_empty() { Ok(()) } else { output.line(&format!("{name:<9} {}", clean(&value))) }
    };
    output.line(&output.bold(clean(&field(l1, "title"))).to_string())?;
    for name in ["doc_id", "source", "space", "category", "language"] {
        line(name, field(l1, name))?;
    }
    line("added", format!("{} by {}", moment(l1, "created_at"), field(l1, "created_by")))?;
    line("updated", moment(l1, "updated_at"))?;
    line("chunks", field(document, "chunk_count"))?;
    if let Some(file) = document.get("file").filter(|file| file.is_object()) {
        let bytes = file.get("size_bytes").and_then(Value::as_u64).unwrap_or_default();
        line("file", format!("{}, {}", field(file, "original_filename"), size(bytes)))?;
    }
    let metadata = l1.get("metadata").and_then(Value::as_object);
    for (key, value) in metadata.into_iter().flatten().filter(|(key, _)| !OF_FILE.contains(&key.as_str())) {
        line("metadata", format!("{key}={}", value.as_str().unwrap_or_default()))?;
    }
    line("summary", field(l1, "summary"))?;
    let sections = document.get("l2").and_then(Value::as_array);
    for section in sections.into_iter().flatten() {
        let id = section.get("node_id");
        output.line(&format!("  {}", clean(&field(section, "title"))))?;
        for passage in document.get("l3").and_then(Value::as_array).into_iter().flatten() {
            let title = field(passage, "title");
            if passage.get("parent_id") == id && !title.is_empty() && title != field(section, "title") {
                output.line(&format!("    {}", clean(&title)))?;
            }
        }
    }
    Ok(())
}

/// Downloads the original. The file gets its name once it is complete, and replaces none.
fn save_file(client: &Client, output: &Output, path: &str, out: Option<&Path>) -> Result<()> {
    let from = format!("{path}/file");
    if out == Some(Path::new("-")) {
        if io::stdout().is_terminal() {
            return Err(usage("a file is not shown in a terminal; redirect the output or name a file"));
        }
        return client.download(&from, &mut io::stdout().lock());
    }
    let to = match out {
        Some(path) => path.to_owned(),
        None => own_name(client, path)?,
    };
    if to.exists() {
        return Err(usage(format!("{} exists; name another file with --out", to.display())));
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut draft =
        NamedTempFile::new_in(folder).with_context(|| format!("write to {}", folder.display()))?;
    client.download(&from, draft.as_file_mut())?;
    let file: File = draft.persist_noclobber(&to).with_context(|| format!("write {}", to.display()))?;
    file.sync_all()?;
    output.line(&to.display().to_string())
}

/// The name under which the file was uploaded, without folders.
fn own_name(client: &Client, path: &str) -> Result<PathBuf> {
    let document = client.get(path)?.data;
    let name = field(document.get("file").unwrap_or(&Value::Null), "original_filename");
    let name = Path::new(&name)
        .file_name()
        .context("the document was not added as a file; --text prints its text")?;
    Ok(PathBuf::from(name))
}

//! Reading one file.

use std::{fs::File, path::Path};

use lkr::{
    files::{FilePlugins, FileReader, FileSource, Format},
    ports::parsers::{Markdown, Parser, PlainText},
};

use super::parsed_file::ParsedFile;
use crate::collection;

/// Parses a file, or returns the reason why it was refused.
pub(super) async fn read(
    reader: &FileReader,
    plugins: &FilePlugins,
    source: &Path,
) -> Result<ParsedFile, String> {
    let (file, length) = open(source).map_err(|error| error.to_string())?;
    let file_name = collection::file_name(source);
    let plugin = plugin_of(plugins, &file_name);
    let source = FileSource { file_name: file_name.clone(), media_type: None, file, length };
    let extracted = reader.read(source, plugins).await.map_err(|error| error.reason())?;
    let parsed = extracted.read().map_err(|error| error.reason())?;
    Ok(ParsedFile { file_name, plugin, parsed })
}

fn open(path: &Path) -> std::io::Result<(File, u64)> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

/// The name of the plugin that reads a file of this name; empty if there is none.
fn plugin_of(plugins: &FilePlugins, file_name: &str) -> String {
    match Format::from_file_name(file_name) {
        Some(Format::Text) => PlainText.name().to_owned(),
        Some(Format::Markdown) => Markdown.name().to_owned(),
        Some(Format::Html) => plugins.html.clone(),
        Some(Format::Pdf) => plugins.pdf.clone(),
        Some(Format::Docx) => plugins.docx.clone(),
        None => String::new(),
    }
}

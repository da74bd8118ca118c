//! The file reader, and a check of the PDFium library with it.

use std::io::Write;

use anyhow::{Context, Result, anyhow};
use lkr::files::{FilePlugins, FileReader, FileSource, FileTools};

use crate::config::Config;

/// The first argument of a parser worker: the same executable, started to parse one file.
pub(crate) const PARSE_WORKER: &str = "parse-worker";

/// A file with the head of a PDF that no parser accepts.
const INVALID_PDF: &[u8] = b"%PDF-1.4\n%%EOF\n";

/// Checks that the PDFium library can be loaded, and returns the tools without a library that cannot. For a configured
/// library that is an error. A worker process does the check, because loading a broken library may crash the process.
pub(crate) async fn check_pdfium(config: &Config, tools: FileTools) -> Result<FileTools> {
    let Some(library) = tools.pdfium.clone() else { return Ok(tools) };
    let reader = open_reader(config, tools.clone())?;
    let mut file =
        tempfile::tempfile_in(reader.spool()).context("cannot create a file in the spool folder")?;
    file.write_all(INVALID_PDF)?;
    let (file_name, length) = ("none.pdf".to_owned(), INVALID_PDF.len() as u64);
    let source = FileSource { file_name, media_type: None, file, length };
    let plugins = FilePlugins { pdf: "pdfium".to_owned(), ..FilePlugins::default() };
    // An error about the file itself comes from the library, so the library was loaded.
    let error = match reader.read(source, &plugins).await {
        Err(error) if error.kind() != lkr::ErrorKind::Invalid => error,
        _ => return Ok(tools),
    };
    let reason = error.reason();
    let reason = reason.lines().next().unwrap_or_default();
    if config.pdfium_library.is_some() {
        return Err(anyhow!("pdfium_library {}: cannot load the library: {reason}", library.display()));
    }
    tracing::warn!(library = %library.display(), reason, "cannot load the PDFium library; continuing without it");
    Ok(FileTools { pdfium: None, ..tools })
}

/// Opens the file reader. Its parsers run in child processes of this executable.
pub(crate) fn open_reader(config: &Config, tools: FileTools) -> Result<FileReader> {
    let program = std::env::current_exe().context("cannot find the path of this executable")?;
    let spool = config.data_dir.join("spool");
    Ok(FileReader::in_workers(program, vec![PARSE_WORKER.into()], spool, tools)?)
}

//! The parser plugins that this machine has.

use std::{
    env,
    path::{Path, PathBuf},
};

use lkr::files::{FilePlugins, FileTools};
use lkr_settings::{Parsers, Plugins};

use crate::config::Config;

/// The available plugins by format, the default first. Blocks while it asks tesseract for its languages.
#[must_use]
pub fn available_plugins(tools: &FileTools) -> Plugins {
    let names = tools.plugins();
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
    Plugins {
        pdf: owned(names.pdf),
        docx: owned(names.docx),
        html: owned(names.html),
        ocr: owned(names.ocr),
        ocr_languages: ocr_languages(tools).map(owned),
    }
}

/// The languages that OCR can read; `None` if unknown.
fn ocr_languages(tools: &FileTools) -> Option<Vec<&'static str>> {
    match tools.ocr_languages() {
        Ok(languages) => languages,
        Err(error) => {
            tracing::warn!(%error, "cannot list the OCR languages; any language is accepted");
            None
        }
    }
}

/// The plugins that the settings select.
pub(crate) fn selected_plugins(parsers: &Parsers) -> FilePlugins {
    FilePlugins {
        pdf: parsers.pdf.plugin.clone(),
        pdf_outline: true,
        docx: parsers.docx.plugin.clone(),
        html: parsers.html.plugin.clone(),
        ocr: parsers.ocr.plugin.clone(),
        ocr_languages: parsers.ocr.languages.clone(),
    }
}

/// Finds the external tools of plugins. PDFium is the configured library, or the first one found beside the program, in
/// the data folder or in the system's library folders. Tesseract is searched for in `PATH`.
pub(crate) fn find_tools(config: &Config) -> FileTools {
    let name = format!("{}pdfium{}", env::consts::DLL_PREFIX, env::consts::DLL_SUFFIX);
    let pdfium = config.pdfium_library.clone().or_else(|| {
        let files = library_folders(config).into_iter().map(|folder| folder.join(&name));
        files.into_iter().find(|file| file.is_file())
    });
    let program = format!("tesseract{}", env::consts::EXE_SUFFIX);
    let folders = env::var_os("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
    let programs = folders.unwrap_or_default().into_iter().map(|folder| folder.join(&program));
    FileTools { pdfium, tesseract: programs.into_iter().find(|file| file.is_file()) }
}

fn library_folders(config: &Config) -> Vec<PathBuf> {
    let program = env::current_exe().ok();
    let program_dir = program.as_deref().and_then(Path::parent).map(Path::to_owned);
    let library_path = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/lib"].map(PathBuf::from);
    let triplet = PathBuf::from(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH));
    program_dir
        .into_iter()
        .chain([config.data_dir.join("lib")])
        .chain(env::split_paths(&library_path))
        .chain(usual)
        .chain([triplet])
        .collect()
}

//! What of the things that settings choose among there is here.

use std::{
    env,
    path::{Path, PathBuf},
};

use lkr::files::{FilePlugins, FileTools};
use lkr_settings::{Parsers, Plugins};

use crate::config::Config;

/// The plugins by what they read, the default first. Blocks where a program has to be asked what it has.
#[must_use]
pub fn plugins(tools: &FileTools) -> Plugins {
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

/// The languages of text in pictures that can be read here; `None` where that is not known.
fn ocr_languages(tools: &FileTools) -> Option<Vec<&'static str>> {
    match tools.ocr_languages() {
        Ok(languages) => languages,
        Err(error) => {
            tracing::warn!(%error, "which languages text in pictures can be read in is not known");
            None
        }
    }
}

/// The plugins that the settings choose.
pub(crate) fn chosen(parsers: &Parsers) -> FilePlugins {
    FilePlugins {
        pdf: parsers.pdf.plugin.clone(),
        docx: parsers.docx.plugin.clone(),
        html: parsers.html.plugin.clone(),
        ocr: parsers.ocr.plugin.clone(),
        ocr_languages: parsers.ocr.languages.clone(),
    }
}

/// Finds what plugins stand on that is not built in. A library that is named counts; else it is looked for beside the
/// program, in the data folder and where systems keep libraries. A program is looked for where programs are.
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
    let beside = program.as_deref().and_then(Path::parent).map(Path::to_owned);
    let named = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let usual = ["/usr/local/lib", "/usr/lib", "/usr/lib64", "/lib"].map(PathBuf::from);
    let triplet = PathBuf::from(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH));
    beside
        .into_iter()
        .chain([config.data_dir.join("lib")])
        .chain(env::split_paths(&named))
        .chain(usual)
        .chain([triplet])
        .collect()
}

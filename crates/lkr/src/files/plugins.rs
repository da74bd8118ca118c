use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_ocr_tesseract::Tesseract;
use lkr_parsers::{Error, ErrorKind, Files, Format, Markdown, Ocr, Parser, PlainText, Result};
use lkr_parsers_docx::{DocxXml, OfficeOxide};
use lkr_parsers_html::{Article, PlainHtml};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide, Pdfium};
use serde::{Deserialize, Serialize};

/// What plugins stand on that is not built in: where it was found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTools {
    /// The library PDFium.
    pub pdfium: Option<PathBuf>,
    /// The program tesseract.
    pub tesseract: Option<PathBuf>,
}

/// Which plugin reads what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlugins {
    /// For PDF files.
    pub pdf: String,
    /// For DOCX files.
    pub docx: String,
    /// For HTML files.
    pub html: String,
    /// For text in pictures; `none` leaves it unread.
    pub ocr: String,
    /// The languages of text in pictures: codes of ISO 639-1.
    pub ocr_languages: Vec<String>,
}

/// The names of the plugins there are, the default of each kind first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginNames {
    /// For PDF files.
    pub pdf: Vec<&'static str>,
    /// For DOCX files.
    pub docx: Vec<&'static str>,
    /// For HTML files.
    pub html: Vec<&'static str>,
    /// For text in pictures.
    pub ocr: Vec<&'static str>,
}

/// What reads no text in pictures.
const NO_OCR: &str = "none";

/// The PDF plugin that no file is known to crash.
const STURDIEST_PDF: &str = "lopdf";

impl Default for FilePlugins {
    fn default() -> Self {
        let default = FileTools::default().plugins();
        let first = |names: &[&str]| names.first().copied().unwrap_or_default().to_owned();
        Self {
            pdf: first(&default.pdf),
            docx: first(&default.docx),
            html: first(&default.html),
            ocr: NO_OCR.to_owned(),
            ocr_languages: vec!["en".to_owned()],
        }
    }
}

impl FilePlugins {
    /// What reads a file of this name on which its plugin crashed, and a warning that says so.
    pub(super) fn instead(&self, file_name: &str) -> Option<(Self, String)> {
        let is_pdf = Format::from_file_name(file_name) == Some(Format::Pdf);
        if !is_pdf || self.pdf == STURDIEST_PDF {
            return None;
        }
        let warning = format!("{} failed on the file; {STURDIEST_PDF} read it instead", self.pdf);
        Some((Self { pdf: STURDIEST_PDF.to_owned(), ..self.clone() }, warning))
    }

    /// Whether text in pictures is read.
    pub(super) fn reads_pictures(&self) -> bool {
        self.ocr != NO_OCR
    }
}

impl FileTools {
    /// The plugins that can be chosen here. What is built in comes first.
    #[must_use]
    pub fn plugins(&self) -> PluginNames {
        let pdfium = self.pdfium.iter().map(|_| "pdfium");
        let tesseract = self.tesseract.iter().map(|_| Tesseract::NAME);
        PluginNames {
            pdf: ["pdf_oxide", STURDIEST_PDF].into_iter().chain(pdfium).collect(),
            docx: vec!["zip_xml", "office_oxide"],
            html: vec!["article", "html2text"],
            ocr: [NO_OCR].into_iter().chain(tesseract).collect(),
        }
    }
}

/// The parsers that the plugins ask for.
pub(super) fn files(
    plugins: &FilePlugins,
    tools: &FileTools,
    ocr_time: std::time::Duration,
) -> Result<Files> {
    let options = PdfOptions { ocr: ocr(plugins, tools)?, ocr_time, ..PdfOptions::default() };
    Ok(Files {
        text: Arc::new(PlainText),
        markdown: Arc::new(Markdown),
        html: html(&plugins.html)?,
        pdf: pdf(&plugins.pdf, tools, options)?,
        docx: docx(&plugins.docx)?,
    })
}

fn pdf(name: &str, tools: &FileTools, options: PdfOptions) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        STURDIEST_PDF => Arc::new(Lopdf::new(options)),
        "pdf_oxide" => Arc::new(PdfOxide::new(options)),
        "pdfium" => {
            let library = found(name, tools.pdfium.as_deref())?;
            Arc::new(Pdfium::load(library)?.with_options(options))
        }
        other => return Err(unknown("PDF", other)),
    })
}

fn docx(name: &str) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        "office_oxide" => Arc::new(OfficeOxide),
        "zip_xml" => Arc::new(DocxXml),
        other => return Err(unknown("DOCX", other)),
    })
}

fn html(name: &str) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        "article" => Arc::new(Article),
        "html2text" => Arc::new(PlainHtml),
        other => return Err(unknown("HTML", other)),
    })
}

fn ocr(plugins: &FilePlugins, tools: &FileTools) -> Result<Option<Arc<dyn Ocr>>> {
    match plugins.ocr.as_str() {
        NO_OCR => Ok(None),
        Tesseract::NAME => {
            let program = found(Tesseract::NAME, tools.tesseract.as_deref())?;
            Ok(Some(Arc::new(Tesseract::new(program, &plugins.ocr_languages)?)))
        }
        other => Err(unknown("OCR", other)),
    }
}

fn found<'a>(name: &str, path: Option<&'a Path>) -> Result<&'a Path> {
    path.ok_or_else(|| Error::new(ErrorKind::Internal, "open a plugin", format!("{name} was not found")))
}

fn unknown(kind: &str, name: &str) -> Error {
    Error::new(ErrorKind::Internal, "open a plugin", format!("there is no {kind} plugin {name:?}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_name_opens_a_parser_of_that_name() {
        let tools = FileTools::default();
        let plugins = tools.plugins();
        let build = |change: &dyn Fn(&mut FilePlugins)| {
            let mut plugins = FilePlugins::default();
            change(&mut plugins);
            files(&plugins, &tools, Duration::ZERO)
        };
        for name in plugins.pdf {
            assert_eq!(build(&|p| p.pdf = name.to_owned()).unwrap().pdf.name(), name);
        }
        for name in plugins.docx {
            assert_eq!(build(&|p| p.docx = name.to_owned()).unwrap().docx.name(), name);
        }
        for name in plugins.html {
            assert_eq!(build(&|p| p.html = name.to_owned()).unwrap().html.name(), name);
        }
        assert_eq!(plugins.ocr, ["none"]);
        let missing = build(&|p| p.pdf = "pdfium".to_owned()).unwrap_err();
        assert_eq!(missing.to_string(), "open a plugin: pdfium was not found");
        let missing = build(&|p| p.ocr = "tesseract".to_owned()).unwrap_err();
        assert_eq!(missing.to_string(), "open a plugin: tesseract was not found");
        let unknown = build(&|p| p.html = "word".to_owned()).unwrap_err();
        assert_eq!(unknown.to_string(), "open a plugin: there is no HTML plugin \"word\"");
    }

    #[test]
    fn what_was_found_can_be_chosen_and_is_no_default() {
        let tools = FileTools { pdfium: Some("a".into()), tesseract: Some("b".into()) };
        let plugins = tools.plugins();
        assert_eq!(plugins.pdf, ["pdf_oxide", "lopdf", "pdfium"]);
        assert_eq!(plugins.ocr, ["none", "tesseract"]);
        assert_eq!(FilePlugins::default().pdf, "pdf_oxide");
    }
}

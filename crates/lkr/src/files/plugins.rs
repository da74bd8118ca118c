use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use lkr_domain::Parsed;
use lkr_ocr_tesseract::Tesseract;
use lkr_parsers::{Error, ErrorKind, Format, Markdown, Ocr, Parser, PlainText, Result, Source, format_of};
use lkr_parsers_docx::{DocxXml, OfficeOxide};
use lkr_parsers_html::{Article, PlainHtml};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide, Pdfium};
use serde::{Deserialize, Serialize};

use super::worker::OpenedParser;

/// External tools of plugins, with the paths where they were found on this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTools {
    /// The PDFium library.
    pub pdfium: Option<PathBuf>,
    /// The tesseract executable.
    pub tesseract: Option<PathBuf>,
}

/// The plugin for each file format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePlugins {
    /// For PDF files.
    pub pdf: String,
    /// Whether the entries of a PDF file's outline are its headings. Off, headings are found as in files without one.
    #[serde(default = "yes")]
    pub pdf_outline: bool,
    /// For DOCX files.
    pub docx: String,
    /// For HTML files.
    pub html: String,
    /// For text in images (OCR); `none` turns it off.
    pub ocr: String,
    /// The languages of text in images, as ISO 639-1 codes.
    pub ocr_languages: Vec<String>,
}

/// The names of the available plugins, the default of each kind first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginNames {
    /// For PDF files.
    pub pdf: Vec<&'static str>,
    /// For DOCX files.
    pub docx: Vec<&'static str>,
    /// For HTML files.
    pub html: Vec<&'static str>,
    /// For text in images (OCR).
    pub ocr: Vec<&'static str>,
}

/// The name that turns OCR off.
const NO_OCR: &str = "none";

/// The most robust PDF plugin: no file is known to crash it.
const FALLBACK_PDF: &str = "lopdf";

impl Default for FilePlugins {
    fn default() -> Self {
        let default = FileTools::default().plugins();
        let first = |names: &[&str]| names.first().copied().unwrap_or_default().to_owned();
        Self {
            pdf: first(&default.pdf),
            pdf_outline: true,
            docx: first(&default.docx),
            html: first(&default.html),
            ocr: NO_OCR.to_owned(),
            ocr_languages: vec!["en".to_owned()],
        }
    }
}

const fn yes() -> bool {
    true
}

impl FilePlugins {
    /// The plugins to use after a crash on a file of this name, with a warning for the user; `None` if there is no more
    /// robust one.
    pub(super) fn fallback(&self, file_name: &str) -> Option<(Self, String)> {
        let is_pdf = Format::from_file_name(file_name) == Some(Format::Pdf);
        if !is_pdf || self.pdf == FALLBACK_PDF {
            return None;
        }
        let warning = format!("{} failed on the file; {FALLBACK_PDF} read it instead", self.pdf);
        Some((Self { pdf: FALLBACK_PDF.to_owned(), ..self.clone() }, warning))
    }

    pub(super) fn uses_ocr(&self) -> bool {
        self.ocr != NO_OCR
    }
}

impl FileTools {
    /// The languages that OCR supports here, as ISO 639-1 codes; `None` if no OCR plugin is available. Blocks, because
    /// it runs the program.
    ///
    /// # Errors
    /// `Internal` if the program cannot be run.
    pub fn ocr_languages(&self) -> crate::Result<Option<Vec<&'static str>>> {
        let program = self.tesseract.as_deref();
        let languages = program.map(Tesseract::languages).transpose();
        languages.map_err(|error| crate::Error::new(crate::ErrorKind::Internal, "list OCR languages", error))
    }

    /// The plugins that are available here, built-in ones first.
    #[must_use]
    pub fn plugins(&self) -> PluginNames {
        let pdfium = self.pdfium.iter().map(|_| "pdfium");
        let tesseract = self.tesseract.iter().map(|_| Tesseract::NAME);
        PluginNames {
            pdf: ["pdf_oxide", FALLBACK_PDF].into_iter().chain(pdfium).collect(),
            docx: vec!["zip_xml", "office_oxide"],
            html: vec!["article", "html2text"],
            ocr: [NO_OCR].into_iter().chain(tesseract).collect(),
        }
    }
}

/// Parses each file with the plugin that is configured for its format. Plugins are opened on use, so a missing tool
/// affects only the files that need it.
#[derive(Debug)]
pub(super) struct PluginParser {
    pub(super) plugins: FilePlugins,
    pub(super) tools: FileTools,
    /// The time limit of OCR for one file.
    pub(super) ocr_time: Duration,
}

/// Opened OCR, if it is configured, with a warning if it is limited.
pub(super) type OptionalOcr = Option<(Arc<dyn Ocr>, Option<String>)>;

impl Parser for PluginParser {
    fn name(&self) -> &'static str {
        "files"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let format = format_of(source)?;
        self.open(format, || ocr(&self.plugins, &self.tools))?.parse(source)
    }
}

impl PluginParser {
    /// What the error of a file that has only pictures adds: how they are read. `warning` is that of the opened OCR.
    fn ocr_hint(&self, warning: Option<&str>) -> Option<String> {
        if let Some(warning) = warning {
            return Some(warning.to_owned());
        }
        let install = if self.tools.tesseract.is_some() { "" } else { "install tesseract and " };
        let hint = format!(
            "to read them, {install}set parsers.ocr.plugin to tesseract and parsers.ocr.languages to the languages of the text"
        );
        (!self.plugins.uses_ocr()).then_some(hint)
    }

    /// Opens the parser for a format, and OCR with `open_ocr` if the format can have images.
    pub(super) fn open(
        &self,
        format: Format,
        open_ocr: impl FnOnce() -> Result<OptionalOcr>,
    ) -> Result<OpenedParser> {
        let (parser, warning): (Arc<dyn Parser>, _) = match format {
            Format::Text => (Arc::new(PlainText), None),
            Format::Markdown => (Arc::new(Markdown), None),
            Format::Html => (html(&self.plugins.html)?, None),
            Format::Docx => (docx(&self.plugins.docx)?, None),
            Format::Pdf => {
                let (ocr, warning) = match open_ocr() {
                    Ok(opened) => opened.map_or((None, None), |(ocr, warning)| (Some(ocr), warning)),
                    Err(error) => {
                        (None, Some(format!("text in images is not recognised: {}", error.reason())))
                    }
                };
                let pdfium_library = self.tools.pdfium.clone();
                let options = PdfOptions {
                    ocr,
                    ocr_time: self.ocr_time,
                    pdfium_library,
                    outline: self.plugins.pdf_outline,
                    ..PdfOptions::default()
                };
                (pdf(&self.plugins.pdf, &self.tools, options)?, warning)
            }
        };
        let ocr_hint = if format == Format::Pdf { self.ocr_hint(warning.as_deref()) } else { None };
        Ok(OpenedParser { parser, warning, ocr_hint })
    }

    /// Loads the library that the parser for a format would load on use. Errors are reported on use.
    pub(super) fn preload(&self, format: Format) {
        if let (Format::Pdf, Some(library)) = (format, &self.tools.pdfium) {
            let _ = Pdfium::load(library);
        }
    }
}

fn pdf(name: &str, tools: &FileTools, options: PdfOptions) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        FALLBACK_PDF => Arc::new(Lopdf::new(options)),
        "pdf_oxide" => Arc::new(PdfOxide::new(options)),
        "pdfium" => {
            let library = require_tool(name, tools.pdfium.as_deref())?;
            Arc::new(Pdfium::load(library)?.with_options(options))
        }
        other => return Err(unknown_plugin("PDF", other)),
    })
}

fn docx(name: &str) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        "office_oxide" => Arc::new(OfficeOxide),
        "zip_xml" => Arc::new(DocxXml),
        other => return Err(unknown_plugin("DOCX", other)),
    })
}

fn html(name: &str) -> Result<Arc<dyn Parser>> {
    Ok(match name {
        "article" => Arc::new(Article),
        "html2text" => Arc::new(PlainHtml),
        other => return Err(unknown_plugin("HTML", other)),
    })
}

/// Opens the OCR plugin, if one is configured, with a warning if languages are missing.
pub(super) fn ocr(plugins: &FilePlugins, tools: &FileTools) -> Result<OptionalOcr> {
    match plugins.ocr.as_str() {
        NO_OCR => Ok(None),
        Tesseract::NAME => {
            let program = require_tool(Tesseract::NAME, tools.tesseract.as_deref())?;
            let tesseract = Tesseract::new(program, &plugins.ocr_languages)?;
            let missing = tesseract.missing().join(", ");
            let warning = format!(
                "text in images is not recognised in {missing}: tesseract has no data for the language"
            );
            Ok(Some((Arc::new(tesseract), Some(warning).filter(|_| !missing.is_empty()))))
        }
        other => Err(unknown_plugin("OCR", other)),
    }
}

fn require_tool<'a>(name: &str, path: Option<&'a Path>) -> Result<&'a Path> {
    path.ok_or_else(|| Error::new(ErrorKind::Internal, "open plugin", format!("{name} was not found")))
}

fn unknown_plugin(kind: &str, name: &str) -> Error {
    Error::new(ErrorKind::Internal, "open plugin", format!("there is no {kind} plugin {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(format: Format, change: impl Fn(&mut FilePlugins)) -> Result<OpenedParser> {
        let mut plugins = FilePlugins::default();
        change(&mut plugins);
        let parser = PluginParser { plugins, tools: FileTools::default(), ocr_time: Duration::ZERO };
        parser.open(format, || ocr(&parser.plugins, &parser.tools))
    }

    fn open_error(format: Format, change: impl Fn(&mut FilePlugins)) -> String {
        open(format, change).unwrap_err().to_string()
    }

    #[test]
    fn every_plugin_name_opens_the_parser_of_that_name() {
        let names = FileTools::default().plugins();
        for name in names.pdf {
            assert_eq!(open(Format::Pdf, |p| p.pdf = name.to_owned()).unwrap().name(), name);
        }
        for name in names.docx {
            assert_eq!(open(Format::Docx, |p| p.docx = name.to_owned()).unwrap().name(), name);
        }
        for name in names.html {
            assert_eq!(open(Format::Html, |p| p.html = name.to_owned()).unwrap().name(), name);
        }
        assert_eq!(names.ocr, ["none"]);
    }

    #[test]
    fn missing_plugin_is_an_error_only_for_files_that_need_it() {
        let pdfium = |p: &mut FilePlugins| p.pdf = "pdfium".to_owned();
        assert_eq!(open_error(Format::Pdf, pdfium), "open plugin: pdfium was not found");
        assert!(open(Format::Text, pdfium).is_ok() && open(Format::Docx, pdfium).is_ok());
        let OpenedParser { warning, .. } = open(Format::Pdf, |p| p.ocr = "tesseract".to_owned()).unwrap();
        assert_eq!(warning.as_deref(), Some("text in images is not recognised: tesseract was not found"));
        let unknown = |p: &mut FilePlugins| p.html = "unknown".to_owned();
        assert_eq!(open_error(Format::Html, unknown), "open plugin: there is no HTML plugin \"unknown\"");
    }

    #[test]
    fn pictures_error_says_how_to_turn_ocr_on() {
        let hint = |tesseract: Option<&str>, ocr: &str, warning| {
            let plugins = FilePlugins { ocr: ocr.to_owned(), ..FilePlugins::default() };
            let tools = FileTools { tesseract: tesseract.map(Into::into), ..FileTools::default() };
            let parser = PluginParser { plugins, tools, ocr_time: Duration::ZERO };
            parser.ocr_hint(warning)
        };
        let settings =
            "set parsers.ocr.plugin to tesseract and parsers.ocr.languages to the languages of the text";
        assert_eq!(hint(Some("a"), "none", None), Some(format!("to read them, {settings}")));
        assert_eq!(hint(None, "none", None), Some(format!("to read them, install tesseract and {settings}")));
        assert_eq!(hint(Some("a"), "tesseract", None), None);
        assert_eq!(hint(None, "tesseract", Some("not found")), Some("not found".to_owned()));
    }

    #[test]
    fn ocr_languages_come_from_the_program() {
        assert_eq!(FileTools::default().ocr_languages().unwrap(), None);
        let broken = FileTools { tesseract: Some("/no/such/program".into()), ..FileTools::default() };
        assert_eq!(broken.ocr_languages().unwrap_err().kind(), crate::ErrorKind::Internal);
    }

    #[test]
    fn found_tools_are_available_and_not_the_default() {
        let tools = FileTools { pdfium: Some("a".into()), tesseract: Some("b".into()) };
        let plugins = tools.plugins();
        assert_eq!(plugins.pdf, ["pdf_oxide", "lopdf", "pdfium"]);
        assert_eq!(plugins.ocr, ["none", "tesseract"]);
        assert_eq!(FilePlugins::default().pdf, "pdf_oxide");
    }
}

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
    /// The languages of text in pictures that can be read here, as codes of ISO 639-1; `None` where no plugin reads
    /// any. Blocks: the program that reads them is asked.
    ///
    /// # Errors
    /// `Internal` where the program cannot be run.
    pub fn ocr_languages(&self) -> crate::Result<Option<Vec<&'static str>>> {
        let program = self.tesseract.as_deref();
        let languages = program.map(Tesseract::languages).transpose();
        languages.map_err(|error| crate::Error::new(crate::ErrorKind::Internal, "ask for languages", error))
    }

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

/// Reads files of every kind, each with the plugin that is chosen for its format. Others are not even opened: one that
/// is missing is no matter to files that it does not read.
#[derive(Debug)]
pub(super) struct Chosen {
    pub(super) plugins: FilePlugins,
    pub(super) tools: FileTools,
    /// The time that text in pictures may take for one file.
    pub(super) ocr_time: Duration,
}

impl Parser for Chosen {
    fn name(&self) -> &'static str {
        "files"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let (parser, warning) = self.open(format_of(source)?)?;
        let mut parsed = parser.parse(source)?;
        parsed.warnings.extend(warning);
        Ok(parsed)
    }
}

impl Chosen {
    /// The parser for a format, and a warning where it cannot do all that it should.
    fn open(&self, format: Format) -> Result<(Arc<dyn Parser>, Option<String>)> {
        Ok(match format {
            Format::Text => (Arc::new(PlainText), None),
            Format::Markdown => (Arc::new(Markdown), None),
            Format::Html => (html(&self.plugins.html)?, None),
            Format::Docx => (docx(&self.plugins.docx)?, None),
            Format::Pdf => {
                let (ocr, warning) = match ocr(&self.plugins, &self.tools) {
                    Ok(opened) => opened,
                    Err(error) => (None, Some(format!("text in pictures is not read: {}", error.reason()))),
                };
                let pdfium_library = self.tools.pdfium.clone();
                let options =
                    PdfOptions { ocr, ocr_time: self.ocr_time, pdfium_library, ..PdfOptions::default() };
                (pdf(&self.plugins.pdf, &self.tools, options)?, warning)
            }
        })
    }
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

/// What reads text in pictures, if anything does.
type Reads = Option<Arc<dyn Ocr>>;

/// What reads text in pictures, and a warning where it does so in fewer languages than it should.
fn ocr(plugins: &FilePlugins, tools: &FileTools) -> Result<(Reads, Option<String>)> {
    match plugins.ocr.as_str() {
        NO_OCR => Ok((None, None)),
        Tesseract::NAME => {
            let program = found(Tesseract::NAME, tools.tesseract.as_deref())?;
            let tesseract = Tesseract::new(program, &plugins.ocr_languages)?;
            let missing = tesseract.missing().join(", ");
            let warning =
                format!("text in pictures is not read in {missing}: tesseract has no data for that");
            Ok((Some(Arc::new(tesseract)), Some(warning).filter(|_| !missing.is_empty())))
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
    use super::*;

    fn open(format: Format, change: impl Fn(&mut FilePlugins)) -> Result<(Arc<dyn Parser>, Option<String>)> {
        let mut plugins = FilePlugins::default();
        change(&mut plugins);
        Chosen { plugins, tools: FileTools::default(), ocr_time: Duration::ZERO }.open(format)
    }

    fn refused(format: Format, change: impl Fn(&mut FilePlugins)) -> String {
        open(format, change).unwrap_err().to_string()
    }

    #[test]
    fn every_name_opens_a_parser_of_that_name() {
        let names = FileTools::default().plugins();
        for name in names.pdf {
            assert_eq!(open(Format::Pdf, |p| p.pdf = name.to_owned()).unwrap().0.name(), name);
        }
        for name in names.docx {
            assert_eq!(open(Format::Docx, |p| p.docx = name.to_owned()).unwrap().0.name(), name);
        }
        for name in names.html {
            assert_eq!(open(Format::Html, |p| p.html = name.to_owned()).unwrap().0.name(), name);
        }
        assert_eq!(names.ocr, ["none"]);
    }

    #[test]
    fn what_is_missing_is_named_where_it_is_needed() {
        let pdfium = |p: &mut FilePlugins| p.pdf = "pdfium".to_owned();
        assert_eq!(refused(Format::Pdf, pdfium), "open a plugin: pdfium was not found");
        assert!(open(Format::Text, pdfium).is_ok() && open(Format::Docx, pdfium).is_ok());
        let (_, warning) = open(Format::Pdf, |p| p.ocr = "tesseract".to_owned()).unwrap();
        assert_eq!(warning.as_deref(), Some("text in pictures is not read: tesseract was not found"));
        let word = |p: &mut FilePlugins| p.html = "word".to_owned();
        assert_eq!(refused(Format::Html, word), "open a plugin: there is no HTML plugin \"word\"");
    }

    #[test]
    fn languages_are_asked_of_the_program() {
        assert_eq!(FileTools::default().ocr_languages().unwrap(), None);
        let broken = FileTools { tesseract: Some("/no/such/program".into()), ..FileTools::default() };
        assert_eq!(broken.ocr_languages().unwrap_err().kind(), crate::ErrorKind::Internal);
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

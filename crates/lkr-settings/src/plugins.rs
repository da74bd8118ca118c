use crate::{Error, OcrChoice, Result};

/// The OCR plugin that recognises nothing. It is the default.
pub(crate) const NO_OCR: &str = "none";

/// The parser plugins that are built into the program, the default of each kind first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plugins {
    /// For PDF files.
    pub pdf: Vec<String>,
    /// For DOCX files.
    pub docx: Vec<String>,
    /// For HTML files.
    pub html: Vec<String>,
    /// For OCR of images; the first is `none`.
    pub ocr: Vec<String>,
    /// The installed OCR languages: codes of ISO 639-1. `None` if they are unknown; then any language is allowed.
    pub ocr_languages: Option<Vec<String>>,
}

impl Plugins {
    pub(crate) fn for_kind(&self, kind: ParserKind) -> &[String] {
        match kind {
            ParserKind::Pdf => &self.pdf,
            ParserKind::Docx => &self.docx,
            ParserKind::Html => &self.html,
            ParserKind::Ocr => &self.ocr,
        }
    }

    /// The plugin that is used if none is stored.
    pub(crate) fn default_for(&self, kind: ParserKind) -> &str {
        self.for_kind(kind).first().map_or("", String::as_str)
    }

    /// The OCR languages that are not installed; none if OCR is off.
    pub(crate) fn missing_languages<'a>(&self, choice: &'a OcrChoice) -> Vec<&'a str> {
        let Some(installed) = self.ocr_languages.as_ref().filter(|_| choice.plugin != NO_OCR) else {
            return Vec::new();
        };
        choice.languages.iter().filter(|code| !installed.contains(code)).map(String::as_str).collect()
    }

    /// Checks that each kind has a default.
    pub(crate) fn check(&self) -> Result<()> {
        for kind in ParserKind::ALL {
            if self.for_kind(kind).is_empty() {
                return Err(Error::invalid(
                    "open settings",
                    format!("no {} plugin is built in", kind.name()),
                ));
            }
        }
        if self.default_for(ParserKind::Ocr) != NO_OCR {
            return Err(Error::invalid("open settings", "the first ocr plugin is not \"none\""));
        }
        Ok(())
    }
}

/// What a parser plugin reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ParserKind {
    Pdf,
    Docx,
    Html,
    Ocr,
}

impl ParserKind {
    pub(crate) const ALL: [Self; 4] = [Self::Pdf, Self::Docx, Self::Html, Self::Ocr];

    /// The name of its entry in `parsers`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Docx => "docx",
            Self::Html => "html",
            Self::Ocr => "ocr",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugins() -> Plugins {
        let one = |name: &str| vec![name.to_owned()];
        Plugins { pdf: one("p"), docx: one("d"), html: one("h"), ocr: one("none"), ocr_languages: None }
    }

    #[test]
    fn check_without_a_default_for_each_kind_fails() {
        assert!(plugins().check().is_ok());
        for without in [
            Plugins { pdf: vec![], ..plugins() },
            Plugins { docx: vec![], ..plugins() },
            Plugins { html: vec![], ..plugins() },
            Plugins { ocr: vec![], ..plugins() },
            Plugins { ocr: vec!["tesseract".to_owned(), "none".to_owned()], ..plugins() },
        ] {
            assert!(without.check().is_err(), "{without:?}");
        }
    }
}

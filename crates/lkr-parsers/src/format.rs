/// The kinds of file that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Format {
    /// Plain text.
    Text,
    /// Markdown.
    Markdown,
    /// HTML.
    Html,
    /// The Portable Document Format.
    Pdf,
    /// Office Open XML of a word processor.
    Docx,
}

/// Every extension in lower case with its leading dot, and what files that end so hold.
const EXTENSIONS: [(&str, Format); 6] = [
    (".txt", Format::Text),
    (".md", Format::Markdown),
    (".html", Format::Html),
    (".htm", Format::Html),
    (".pdf", Format::Pdf),
    (".docx", Format::Docx),
];

impl Format {
    /// The extensions that are known, in lower case with their leading dots.
    pub fn extensions() -> impl Iterator<Item = &'static str> {
        EXTENSIONS.iter().map(|(extension, _)| *extension)
    }

    /// What a file holds whose name ends with `extension`: in lower case, with its leading dot.
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        EXTENSIONS.iter().find_map(|(known, format)| (*known == extension).then_some(*format))
    }

    /// What a file of this name holds, as far as its last suffix tells.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        Self::from_extension(&extension(name))
    }

    /// The kind of file in the words of a message.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Text => "a text file",
            Self::Markdown => "a Markdown file",
            Self::Html => "an HTML page",
            Self::Pdf => "a PDF file",
            Self::Docx => "a DOCX file",
        }
    }

    /// The media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain",
            Self::Markdown => "text/markdown",
            Self::Html => "text/html",
            Self::Pdf => "application/pdf",
            Self::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        }
    }
}

/// The last suffix of a file name, in lower case with its leading dot; empty where there is none. A name that begins
/// with its only dot has no suffix.
#[must_use]
pub fn extension(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    match last.rfind('.') {
        Some(at) if at > 0 => {
            last.get(at..).filter(|suffix| suffix.len() > 1).unwrap_or_default().to_lowercase()
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_of_names() {
        for (name, expected) in [
            ("a.txt", ".txt"),
            ("a.TXT", ".txt"),
            ("archive.tar.gz", ".gz"),
            ("C:\\files\\a.b\\report.PDF", ".pdf"),
            ("dir.d/name", ""),
            (".pdf", ""),
            ("name.", ""),
            ("", ""),
            ("名前.docx", ".docx"),
        ] {
            assert_eq!(extension(name), expected, "{name:?}");
        }
    }

    #[test]
    fn formats_of_names() {
        assert_eq!(Format::from_file_name("x/Report.HTM"), Some(Format::Html));
        assert_eq!(Format::from_file_name("report.exe"), None);
        assert_eq!(Format::from_file_name("report"), None);
        for extension in Format::extensions() {
            assert!(Format::from_extension(extension).is_some(), "{extension}");
        }
    }
}

use lkr_domain::stem_and_suffix;

use crate::{Error, ErrorKind, Result, Source, sniff};

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
    stem_and_suffix(name).1.to_lowercase()
}

/// What a source holds, as its name tells and its first bytes do not deny.
///
/// # Errors
/// `Input` where its name has no known extension, or its content is clearly something else.
pub fn format_of(source: &Source<'_>) -> Result<Format> {
    let name = source.file_name.unwrap_or_default();
    let format = Format::from_file_name(name).ok_or_else(|| unknown(name))?;
    sniff::check(format, source.bytes)?;
    Ok(format)
}

fn unknown(name: &str) -> Error {
    let known = Format::extensions().collect::<Vec<_>>().join(", ");
    let reason = match extension(name).as_str() {
        "" => format!("its name has no extension; known are {known}"),
        extension => format!("files that end with {extension} are not read; known are {known}"),
    };
    Error::new(ErrorKind::Input, "find the file's parser", reason)
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

    fn of(file_name: Option<&str>, bytes: &[u8]) -> Result<Format> {
        format_of(&Source { file_name, ..Source::new(bytes) })
    }

    #[test]
    fn formats_of_sources() {
        for (name, bytes, format) in [
            ("a.txt", &b"\xef\xbb\xbfcaf\xc3\xa9"[..], Format::Text),
            ("a.MD", b"\xff\xfe#\0 \0a\0", Format::Markdown),
            ("a.htm", b"<p>", Format::Html),
            ("a.pdf", b"%PDF-1.7", Format::Pdf),
            ("dir/a.docx", b"PK\x03\x04", Format::Docx),
        ] {
            assert_eq!(of(Some(name), bytes).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn other_names_and_contents_are_refused() {
        for (name, bytes, reason) in [
            (None, &b"a"[..], "its name has no extension; known are .txt, .md, .html, .htm, .pdf, .docx"),
            (
                Some("a.exe"),
                b"a",
                "files that end with .exe are not read; known are .txt, .md, .html, .htm, .pdf, .docx",
            ),
        ] {
            let error = of(name, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert_eq!(error.to_string(), format!("find the file's parser: {reason}"));
        }
        assert_eq!(of(Some("a.pdf"), b"<html>").unwrap_err().kind(), ErrorKind::Input);
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

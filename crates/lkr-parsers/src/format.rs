use lkr_domain::stem_and_suffix;

use crate::{Error, ErrorKind, Result, Source, sniff};

/// The supported file formats.
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

/// Every supported extension in lower case with its leading dot, and its format.
const EXTENSIONS: [(&str, Format); 6] = [
    (".txt", Format::Text),
    (".md", Format::Markdown),
    (".html", Format::Html),
    (".htm", Format::Html),
    (".pdf", Format::Pdf),
    (".docx", Format::Docx),
];

impl Format {
    /// The supported extensions, in lower case with their leading dots.
    pub fn extensions() -> impl Iterator<Item = &'static str> {
        EXTENSIONS.iter().map(|(extension, _)| *extension)
    }

    /// The format of files with this extension, given in lower case with its leading dot.
    #[must_use]
    pub fn from_extension(extension: &str) -> Option<Self> {
        EXTENSIONS.iter().find_map(|(supported, format)| (*supported == extension).then_some(*format))
    }

    /// The format of a file by the extension of its name.
    #[must_use]
    pub fn from_file_name(name: &str) -> Option<Self> {
        Self::from_extension(&extension(name))
    }

    /// A description for messages.
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

/// The last suffix of a file name, in lower case with its leading dot; empty if there is none. A name whose only dot is
/// the first character has no suffix.
#[must_use]
pub fn extension(name: &str) -> String {
    stem_and_suffix(name).1.to_lowercase()
}

/// The format of a source by its name, if its first bytes do not contradict it.
///
/// # Errors
/// `Input` if its name has no supported extension, or its content is clearly of another format.
pub fn format_of(source: &Source<'_>) -> Result<Format> {
    let name = source.file_name.unwrap_or_default();
    let format = Format::from_file_name(name).ok_or_else(|| unsupported(name))?;
    sniff::check(format, source.bytes)?;
    Ok(format)
}

fn unsupported(name: &str) -> Error {
    let supported = Format::extensions().collect::<Vec<_>>().join(", ");
    let reason = match extension(name).as_str() {
        "" => format!("its name has no extension; supported extensions: {supported}"),
        extension => {
            format!("files that end with {extension} are not supported; supported extensions: {supported}")
        }
    };
    Error::new(ErrorKind::Input, "determine the file format", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_is_last_suffix_in_lower_case() {
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
    fn media_type_is_the_content_type_of_each_extension() {
        for (extension, format) in EXTENSIONS {
            assert_eq!(lkr_domain::content_type(&format!("a{extension}")), format.media_type());
        }
        assert_eq!(lkr_domain::content_type("a.exe"), "application/octet-stream");
    }

    fn format_named(file_name: Option<&str>, bytes: &[u8]) -> Result<Format> {
        format_of(&Source { file_name, ..Source::new(bytes) })
    }

    #[test]
    fn format_of_source_follows_its_extension() {
        for (name, bytes, format) in [
            ("a.txt", &b"\xef\xbb\xbfcaf\xc3\xa9"[..], Format::Text),
            ("a.MD", b"\xff\xfe#\0 \0a\0", Format::Markdown),
            ("a.htm", b"<p>", Format::Html),
            ("a.pdf", b"%PDF-1.7", Format::Pdf),
            ("dir/a.docx", b"PK\x03\x04", Format::Docx),
        ] {
            assert_eq!(format_named(Some(name), bytes).unwrap(), format, "{name}");
        }
    }

    #[test]
    fn unsupported_extension_or_mismatch_is_rejected() {
        for (name, bytes, reason) in [
            (
                None,
                &b"a"[..],
                "its name has no extension; supported extensions: .txt, .md, .html, .htm, .pdf, .docx",
            ),
            (
                Some("a.exe"),
                b"a",
                "files that end with .exe are not supported; supported extensions: .txt, .md, .html, .htm, .pdf, .docx",
            ),
        ] {
            let error = format_named(name, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert_eq!(error.to_string(), format!("determine the file format: {reason}"));
        }
        assert_eq!(format_named(Some("a.pdf"), b"<html>").unwrap_err().kind(), ErrorKind::Input);
    }

    #[test]
    fn format_of_name_follows_its_extension() {
        assert_eq!(Format::from_file_name("x/Report.HTM"), Some(Format::Html));
        assert_eq!(Format::from_file_name("report.exe"), None);
        assert_eq!(Format::from_file_name("report"), None);
        for extension in Format::extensions() {
            assert!(Format::from_extension(extension).is_some(), "{extension}");
        }
    }
}

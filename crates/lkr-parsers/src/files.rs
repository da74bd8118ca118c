use std::sync::Arc;

use lkr_domain::Parsed;

use crate::{Error, ErrorKind, Format, Parser, Result, Source, extension, sniff};

/// Reads files of every kind that is known, each with the parser of its format, which its name tells.
#[derive(Debug, Clone)]
pub struct Files {
    /// Reads plain text.
    pub text: Arc<dyn Parser>,
    /// Reads Markdown.
    pub markdown: Arc<dyn Parser>,
    /// Reads HTML.
    pub html: Arc<dyn Parser>,
    /// Reads PDF.
    pub pdf: Arc<dyn Parser>,
    /// Reads DOCX.
    pub docx: Arc<dyn Parser>,
}

impl Files {
    /// The parser of a format.
    #[must_use]
    pub fn of(&self, format: Format) -> &dyn Parser {
        match format {
            Format::Text => &*self.text,
            Format::Markdown => &*self.markdown,
            Format::Html => &*self.html,
            Format::Pdf => &*self.pdf,
            Format::Docx => &*self.docx,
        }
    }
}

impl Parser for Files {
    fn name(&self) -> &'static str {
        "files"
    }

    /// Refuses a file whose name has no known extension, or whose content is clearly something else.
    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let format = format_of(source)?;
        self.of(format).parse(source)
    }
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
    use crate::{Markdown, PlainText};

    #[derive(Debug)]
    struct Named(&'static str);

    impl Parser for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn parse(&self, _: &Source<'_>) -> Result<Parsed> {
            Ok(Parsed { text: self.0.to_owned(), ..Parsed::default() })
        }
    }

    fn parse(file_name: Option<&str>, bytes: &[u8]) -> Result<Parsed> {
        let files = Files {
            text: Arc::new(PlainText),
            markdown: Arc::new(Markdown),
            html: Arc::new(Named("html")),
            pdf: Arc::new(Named("pdf")),
            docx: Arc::new(Named("docx")),
        };
        files.parse(&Source { file_name, ..Source::new(bytes) })
    }

    #[test]
    fn the_name_tells_the_parser() {
        for (name, bytes, text) in [
            ("a.txt", &b"\xef\xbb\xbfcaf\xc3\xa9"[..], "café"),
            ("a.MD", b"\xff\xfe#\0 \0a\0", "# a"),
            ("a.htm", b"<p>", "html"),
            ("a.pdf", b"%PDF-1.7", "pdf"),
            ("dir/a.docx", b"PK\x03\x04", "docx"),
        ] {
            assert_eq!(parse(Some(name), bytes).unwrap().text, text, "{name}");
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
            let error = parse(name, bytes).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert_eq!(error.to_string(), format!("find the file's parser: {reason}"));
        }
        assert_eq!(parse(Some("a.pdf"), b"<html>").unwrap_err().kind(), ErrorKind::Input);
    }
}

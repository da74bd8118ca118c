//! Files of which a part is missing.

use lkr_parsers::{ErrorKind, Source};
use lkr_parsers_pdf::PdfOptions;

use crate::common::{Pdf, check, line, parsers};

/// A file of several pages.
fn whole() -> Vec<u8> {
    let page = |number: u32| line(10, 700, &format!("This is page {number} of a file that is cut off."));
    (1..=20).fold(Pdf::default(), |pdf, number| pdf.page(&page(number))).bytes()
}

/// The file with this reference replaced by one to an object that does not exist.
fn without_object(pdf: &Pdf, reference: &str) -> Vec<u8> {
    let (key, _) = reference.split_once(' ').unwrap();
    let text = String::from_utf8(pdf.bytes()).unwrap();
    assert!(text.contains(reference));
    text.replacen(reference, &format!("{key} 0 0 R"), 1).into_bytes()
}

#[test]
fn file_without_its_end_is_refused_as_damaged_or_has_a_warning() {
    let whole = whole();
    for part in (1..10).map(|tenth| &whole[..whole.len() * tenth / 10]) {
        for parser in parsers(&PdfOptions::default()) {
            let name = format!("{} at {}", parser.name(), part.len());
            match parser.parse(&Source::new(part)) {
                Ok(parsed) => {
                    assert!(
                        parsed
                            .warnings
                            .iter()
                            .any(|warning| warning.starts_with("the end of the file is missing")),
                        "{name}: {:?}",
                        parsed.warnings
                    );
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::Damaged, "{name}: {error}"),
            }
        }
    }
}

#[test]
fn whole_file_has_no_warning() {
    check(&whole(), |name, parsed| assert!(parsed.warnings.is_empty(), "{name}: {:?}", parsed.warnings));
}

#[test]
fn pages_without_their_content_are_damaged_and_no_pictures() {
    let lost = without_object(&Pdf::default().page(""), "/Contents 7 0 R");
    for parser in parsers(&PdfOptions::default()) {
        let error = parser.parse(&Source::new(&lost)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Damaged, "{}: {error}", parser.name());
    }
    let with_text = Pdf::default().page(&line(10, 700, "A page with text.")).page("");
    check(&without_object(&with_text, "/Contents 9 0 R"), |name, parsed| {
        assert_eq!(parsed.text, "A page with text.", "{name}");
        let expected = "1 page has content that is missing or damaged";
        assert!(parsed.warnings.iter().any(|warning| warning == expected), "{name}: {:?}", parsed.warnings);
    });
}

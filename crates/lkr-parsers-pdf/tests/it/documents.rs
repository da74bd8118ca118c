//! The result of every parser for the same documents.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{Pdf, headings, line, parsers, rendering_parsers, texts};
use lkr_domain::Parsed;
use lkr_parsers::{ErrorKind, Ocr, PageImage, Parser, Result, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide};

fn check(bytes: &[u8], expect: impl Fn(&str, &Parsed)) {
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(bytes)).unwrap();
        lkr_parsers::conformance::assert_well_formed(&parsed);
        expect(parser.name(), &parsed);
    }
}

#[test]
fn paragraphs_know_their_pages() {
    let first = line(10, 700, "One fine day it rained.") + &line(10, 688, "It went on raining.");
    let pdf =
        Pdf::default().page(&(first + &line(10, 640, "Then it snowed."))).page(&line(10, 700, "The end."));
    check(&pdf.bytes(), |name, parsed| {
        let expected = [
            ("One fine day it rained.\nIt went on raining.", Some(1)),
            ("Then it snowed.", Some(1)),
            ("The end.", Some(2)),
        ];
        assert_eq!(texts(parsed, false), expected, "{name}");
        assert!(parsed.warnings.is_empty(), "{name}: {:?}", parsed.warnings);
    });
}

#[test]
fn the_outline_makes_the_headings() {
    let first =
        line(12, 700, "1  Methods and") + &line(12, 686, "Materials") + &line(12, 650, "We took some wood.");
    let second =
        line(12, 700, "Results. Nothing came of it.") + &line(12, 650, "Nothing at all, though we tried.");
    let pdf = Pdf::default()
        .page(&first)
        .page(&(second + &line(12, 600, &"And so on. ".repeat(8)).repeat(8)))
        .entry(0, "Methods and materials", 0, 715.0)
        .entry(1, "Results", 1, 715.0)
        .entry(1, "Unseen", 1, 640.0)
        .entry(0, "Page 2 of the document, as its tool has called it for no good reason at all", 1, 630.0);
    check(&pdf.bytes(), |name, parsed| {
        let expected = [
            (1, "Methods and materials", Some(1)),
            (2, "Results", Some(2)),
            (2, "Unseen", Some(2)),
            (1, "Page 2 of the document, as its tool has called it for no good reason at all", Some(2)),
        ];
        assert_eq!(headings(parsed), expected, "{name}: {}", parsed.text);
        let texts = texts(parsed, false);
        assert!(texts.contains(&("1 Methods and\nMaterials", Some(1))), "{name}: {texts:?}");
        assert!(texts.contains(&("Results.", Some(2))), "{name}: {texts:?}");
        assert!(texts.contains(&("Nothing came of it.", Some(2))), "{name}: {texts:?}");
        assert!(texts.contains(&("Unseen", Some(2))), "{name}: {texts:?}");
        assert!(
            texts.contains(&("§", Some(2))),
            "{name}: a title that would be much of the text is a mark: {texts:?}"
        );
    });
}

#[test]
fn sizes_make_headings_where_there_is_no_outline() {
    let body = line(10, 660, "The text of the chapter goes on and on in letters of the usual size.");
    let page = line(24, 740, "Of Whales") + &line(14, 690, "Their size") + &body + &line(10, 648, "It ends.");
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        assert_eq!(headings(parsed), [(1, "Of Whales", Some(1)), (2, "Their size", Some(1))], "{name}");
    });
}

#[test]
fn running_lines_are_furniture() {
    let page = |number: u32, body: &str| {
        line(9, 780, "Annual report")
            + &line(10, 600, &body.repeat(3))
            + &line(9, 20, &format!("Page {number}"))
    };
    let bodies =
        ["Alpha came first of all. ", "Beta was late as ever. ", "Gamma never came. ", "Delta slept. "];
    let pdf = (1..).zip(bodies).fold(Pdf::default(), |pdf, (number, body)| pdf.page(&page(number, body)));
    check(&pdf.bytes(), |name, parsed| {
        let furniture = texts(parsed, true);
        assert_eq!(furniture.len(), 8, "{name}: {furniture:?}");
        assert_eq!(furniture[3], ("Page 2", Some(2)), "{name}");
        assert_eq!(texts(parsed, false).len(), 4, "{name}");
    });
}

#[test]
fn rows_of_cells_are_a_table() {
    let row = |y, cells: [&str; 3]| -> String {
        (50..)
            .step_by(150)
            .zip(cells)
            .map(|(x, cell)| format!("BT /R 10 Tf {x} {y} Td ({cell}) Tj ET\n"))
            .collect()
    };
    let page = row(700, ["Name", "Age", "City"]) + &row(688, ["Ann", "31", "Oslo"]);
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        assert_eq!(parsed.text, "Name | Age | City\nAnn | 31 | Oslo", "{name}");
    });
}

#[test]
fn what_is_no_pdf_file_is_refused() {
    for parser in parsers(&PdfOptions::default()) {
        for bytes in [&b""[..], b"PK\x03\x04", b"<html>no</html>", b"%PDF-1.7"] {
            let refused = parser.parse(&Source::new(bytes));
            let kind = refused.map(|parsed| parsed.text).map_err(|error| error.kind());
            assert!(
                matches!(kind, Err(ErrorKind::Input)) || kind == Ok(String::new()),
                "{}: {kind:?}",
                parser.name()
            );
        }
    }
}

#[test]
fn a_file_that_is_cut_is_read_as_far_as_it_goes() {
    let whole = Pdf::default().page(&line(10, 700, "Still here.")).page(&line(10, 700, "Gone.")).bytes();
    for end in (0..whole.len()).step_by(40) {
        for parser in parsers(&PdfOptions::default()) {
            if let Ok(parsed) = parser.parse(&Source::new(&whole[..end])) {
                lkr_parsers::conformance::assert_well_formed(&parsed);
            }
        }
    }
}

/// A file with an encrypted page, which opens with this password.
fn encrypted(user: &str) -> Vec<u8> {
    enciphered(user, 128)
}

fn enciphered(user: &str, key_length: usize) -> Vec<u8> {
    use lopdf::{Document, EncryptionState, EncryptionVersion, Object, Permissions, StringFormat};
    let mut document =
        Document::load_mem(&Pdf::default().page(&line(10, 700, "Secret words.")).bytes()).unwrap();
    let id = || Object::String(vec![7; 16], StringFormat::Literal);
    document.trailer.set("ID", vec![id(), id()]);
    let version = EncryptionVersion::V2 {
        document: &document,
        owner_password: "owner",
        user_password: user,
        key_length,
        permissions: Permissions::all(),
    };
    let state = EncryptionState::try_from(version).unwrap();
    document.encrypt(&state).unwrap();
    let mut bytes = Vec::new();
    document.save_to(&mut bytes).unwrap();
    bytes
}

#[test]
fn passwords_are_asked_for() {
    check(&encrypted(""), |name, parsed| assert_eq!(parsed.text, "Secret words.", "{name}"));
    for parser in parsers(&PdfOptions::default()) {
        let error = parser.parse(&Source::new(&encrypted("user"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Encrypted, "{}: {error}", parser.name());
        assert!(error.to_string().contains("opens with a password only"), "{error}");
    }
}

#[test]
fn a_cipher_that_is_not_known_is_told() {
    // The password is right, but of what lies behind it nothing makes sense: here no pages, there no content of them.
    let find = |bytes: &[u8], words: &str| {
        bytes.windows(words.len()).position(|window| window == words.as_bytes()).unwrap()
    };
    let mut pageless = encrypted("");
    let at = find(&pageless, "/Pages 2 0 R");
    pageless[at + 7] = b'9';
    let mut garbled = encrypted("");
    let (begin, end) = (find(&garbled, "stream\n") + 7, find(&garbled, "endstream"));
    garbled[begin..end - 1].fill(b'x');
    for parser in parsers(&PdfOptions::default()) {
        let error = parser.parse(&Source::new(&pageless)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Encrypted, "{}: {error}", parser.name());
        assert!(error.to_string().contains("in a way that is not known"), "{}: {error}", parser.name());
        let parsed = parser.parse(&Source::new(&garbled)).unwrap();
        let told = parsed.warnings.iter().any(|warning| warning.starts_with("the file is encrypted"));
        assert!(parsed.text.is_empty() && told, "{}: {parsed:?}", parser.name());
    }
}

#[test]
fn lopdf_blames_no_password_where_the_key_is_short() {
    let mut bytes = enciphered("", 40);
    for (from, to) in [("/V 2", "/V 4"), ("/R 3", "/R 4")] {
        let at = bytes.windows(4).position(|window| window == from.as_bytes()).unwrap();
        bytes[at..at + 4].copy_from_slice(to.as_bytes());
    }
    let error = Lopdf::default().parse(&Source::new(&bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Encrypted);
    assert!(error.to_string().contains("in a way that is not known"), "{error}");
}

#[test]
fn a_deadline_ends_the_reading() {
    let bytes = Pdf::default().page(&line(10, 700, "Never read.")).page("").bytes();
    for parser in parsers(&PdfOptions::default()) {
        let source = Source { deadline: Some(Instant::now()), ..Source::new(&bytes) };
        let parsed = parser.parse(&source).unwrap();
        assert_eq!(
            (parsed.text.as_str(), &parsed.warnings[..]),
            ("", &["2 pages were left out".to_owned()][..])
        );
    }
}

#[test]
fn a_long_document_is_whole_although_time_is_short() {
    let page = |number: u32| -> String {
        (0..40)
            .map(|at| line(10, 740 - 15 * at, &format!("Row {at} of page {number}, with words.")))
            .collect()
    };
    let bytes = (1..=2000).fold(Pdf::default(), |pdf, number| pdf.page(&page(number))).bytes();
    let begun = Instant::now();
    Lopdf::default().parse(&Source::new(&bytes)).unwrap();
    let by_lopdf = begun.elapsed();
    // Enough for lopdf and not for pdf_oxide. Other work on the machine can use up any fixed time, so it grows.
    let parse_within = |factor: u32| {
        let enough = (factor * by_lopdf).max(Duration::from_secs(1));
        let source = Source { deadline: Some(Instant::now() + enough), ..Source::new(&bytes) };
        PdfOxide::new(PdfOptions::default()).parse(&source).unwrap()
    };
    let is_complete = |parsed: &Parsed| parsed.text.contains("of page 2000,");
    let parsed = [6, 12, 24].into_iter().map(parse_within).find(is_complete).expect("all pages are read");
    for number in [1, 1000, 2000] {
        assert!(parsed.text.contains(&format!("of page {number},")), "{number}: {:?}", parsed.warnings);
    }
    let is_known = |warning: &String| warning.ends_with(" to 2000 were read by lopdf, as time was short");
    assert!(parsed.warnings.iter().all(is_known) && parsed.warnings.len() <= 1, "{:?}", parsed.warnings);
}

#[test]
fn no_more_pages_are_read_than_may_be() {
    let bytes = Pdf::default().page(&line(10, 700, "One.")).page(&line(10, 700, "Two.")).bytes();
    for parser in parsers(&PdfOptions { max_pages: 1, ..PdfOptions::default() }) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        assert_eq!(
            (parsed.text.as_str(), &parsed.warnings[..]),
            ("One.", &["1 page was left out".to_owned()][..])
        );
    }
}

/// Reads every picture as the same words and remembers what it was shown.
#[derive(Debug, Default)]
struct Reader(Mutex<Vec<(u32, u32, u8)>>);

impl Ocr for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn read(&self, image: &PageImage<'_>, deadline: Instant) -> Result<String> {
        assert!(deadline > Instant::now());
        assert_eq!(image.grey.len(), usize::try_from(image.width * image.height).unwrap());
        let darkest = image.grey.iter().min().copied().unwrap();
        self.0.lock().unwrap().push((image.width, image.height, darkest));
        Ok("Read from\na picture.\n\nAll of it.\n".into())
    }
}

#[test]
fn pages_without_text_are_given_to_ocr() {
    let square = "0 g 100 100 200 200 re f";
    let bytes = Pdf::default().page(square).page(&line(10, 700, "Words.")).page(square).bytes();
    let reader = Arc::new(Reader::default());
    let options = PdfOptions { ocr: Some(reader.clone()), ocr_pages: 1, ..PdfOptions::default() };
    for parser in rendering_parsers(&options) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        let expected = [("Read from\na picture.", Some(1)), ("All of it.", Some(1)), ("Words.", Some(2))];
        assert_eq!(texts(&parsed, false), expected, "{}", parser.name());
        assert_eq!(parsed.warnings, ["1 page without text was not read: OCR reads no more than 1 of a file"]);
        let shown = reader.0.lock().unwrap().drain(..).collect::<Vec<_>>();
        assert!(matches!(shown[..], [(1666..=1668, 2221..=2223, 0..=20)]), "{}: {shown:?}", parser.name());
    }
}

#[test]
fn page_without_text_gets_a_warning_if_no_renderer_is_available() {
    let square = "0 g 100 100 200 200 re f";
    let bytes = Pdf::default().page(square).page(&line(10, 700, "Words.")).bytes();
    let options = PdfOptions { ocr: Some(Arc::new(Reader::default())), ..PdfOptions::default() };
    let warning = |parser: &dyn Parser| {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        assert_eq!((parsed.text.as_str(), parsed.warnings.len()), ("Words.", 1));
        parsed.warnings.concat()
    };
    let prefix = "1 page has no text and no renderer is available";
    assert_eq!(
        warning(&Lopdf::new(options.clone())),
        format!("{prefix}: the plugin lopdf cannot render pages")
    );
    if cfg!(not(feature = "oxide-rendering")) {
        assert_eq!(
            warning(&PdfOxide::new(options)),
            format!("{prefix}: set LKR_PDFIUM_LIBRARY to the path of PDFium's library")
        );
    }
}

#[test]
fn ocr_stops_at_its_time_limit() {
    let bytes = Pdf::default().page("0 g 100 100 200 200 re f").bytes();
    let options = PdfOptions {
        ocr: Some(Arc::new(Reader::default())),
        ocr_time: Duration::ZERO,
        ..PdfOptions::default()
    };
    for parser in rendering_parsers(&options) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        assert_eq!(
            parsed.warnings,
            ["1 page without text was not read: the time for OCR ran out"],
            "{}",
            parser.name()
        );
    }
    check(&bytes, |name, parsed| {
        assert_eq!(parsed.warnings, ["1 page holds no text (a picture?)"], "{name}");
    });
}

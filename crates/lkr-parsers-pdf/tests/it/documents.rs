//! Every parser returns the same result for the same document.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::common::{Pdf, headings, line, parsers, rendering_parsers, texts};
use lkr_domain::Parsed;
use lkr_parsers::{Clock, Deadline, ErrorKind, Ocr, PageImage, Parser, Result, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide};

fn check(bytes: &[u8], expect: impl Fn(&str, &Parsed)) {
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(bytes)).unwrap();
        lkr_parsers::conformance::assert_well_formed(&parsed);
        expect(parser.name(), &parsed);
    }
}

#[test]
fn paragraphs_have_page_numbers() {
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
fn headings_come_from_the_outline() {
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
            "{name}: a long invisible title is replaced by §: {texts:?}"
        );
    });
}

#[test]
fn headings_come_from_font_sizes_without_an_outline() {
    let body = line(10, 660, "The text of the chapter goes on and on in letters of the usual size.");
    let page = line(24, 740, "Of Whales") + &line(14, 690, "Their size") + &body + &line(10, 648, "It ends.");
    check(&Pdf::default().page(&page).bytes(), |name, parsed| {
        assert_eq!(headings(parsed), [(1, "Of Whales", Some(1)), (2, "Their size", Some(1))], "{name}");
    });
}

#[test]
fn repeated_page_headers_and_footers_are_furniture() {
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
fn aligned_cells_are_a_table() {
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
fn non_pdf_input_is_rejected() {
    for parser in parsers(&PdfOptions::default()) {
        for bytes in [&b""[..], b"PK\x03\x04", b"<html>no</html>", b"%PDF-1.7"] {
            let error = parser.parse(&Source::new(bytes)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Damaged, "{}: {error}", parser.name());
            assert!(error.reason().starts_with("the file is damaged or incomplete: "), "{error}");
        }
    }
}

#[test]
fn truncated_file_gives_no_malformed_result() {
    let complete = Pdf::default().page(&line(10, 700, "Still here.")).page(&line(10, 700, "Gone.")).bytes();
    for end in (0..complete.len()).step_by(40) {
        for parser in parsers(&PdfOptions::default()) {
            if let Ok(parsed) = parser.parse(&Source::new(&complete[..end])) {
                lkr_parsers::conformance::assert_well_formed(&parsed);
            }
        }
    }
}

/// An encrypted file with this user password.
fn encrypted(user: &str) -> Vec<u8> {
    encrypted_with_key(user, 128)
}

fn encrypted_with_key(user: &str, key_length: usize) -> Vec<u8> {
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
fn file_with_a_password_is_rejected_as_encrypted() {
    check(&encrypted(""), |name, parsed| assert_eq!(parsed.text, "Secret words.", "{name}"));
    for parser in parsers(&PdfOptions::default()) {
        let error = parser.parse(&Source::new(&encrypted("user"))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Encrypted, "{}: {error}", parser.name());
        assert!(error.to_string().contains("needs a password; save a copy"), "{error}");
    }
}

#[test]
fn undecryptable_file_is_rejected_or_gets_a_warning() {
    // The password is right, but decryption yields no pages in the first file, and no page content in the second.
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
        assert!(error.to_string().contains("with an unsupported cipher"), "{}: {error}", parser.name());
        let parsed = parser.parse(&Source::new(&garbled)).unwrap();
        let warned = parsed.warnings.iter().any(|warning| warning.starts_with("the file is encrypted"));
        assert!(parsed.text.is_empty() && warned, "{}: {parsed:?}", parser.name());
    }
}

#[test]
fn lopdf_reports_an_unsupported_cipher_for_a_short_v4_key() {
    let mut bytes = encrypted_with_key("", 40);
    for (from, to) in [("/V 2", "/V 4"), ("/R 3", "/R 4")] {
        let at = bytes.windows(4).position(|window| window == from.as_bytes()).unwrap();
        bytes[at..at + 4].copy_from_slice(to.as_bytes());
    }
    let error = Lopdf::default().parse(&Source::new(&bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Encrypted);
    assert!(error.to_string().contains("with an unsupported cipher"), "{error}");
}

#[test]
fn parse_past_its_deadline_reads_no_page() {
    let bytes = Pdf::default().page(&line(10, 700, "Never read.")).page("").bytes();
    for parser in parsers(&PdfOptions::default()) {
        let source =
            Source { deadline: Some(Deadline::after(Clock::Wall, Duration::ZERO)), ..Source::new(&bytes) };
        let parsed = parser.parse(&source).unwrap();
        assert_eq!(
            (parsed.text.as_str(), &parsed.warnings[..]),
            ("", &["2 pages were left out".to_owned()][..])
        );
    }
}

#[test]
fn long_document_near_its_deadline_is_completed_by_lopdf() {
    let page = |number: u32| -> String {
        (0..40)
            .map(|at| line(10, 740 - 15 * at, &format!("Row {at} of page {number}, with words.")))
            .collect()
    };
    let bytes = (1..=2000).fold(Pdf::default(), |pdf, number| pdf.page(&page(number))).bytes();
    let started = Instant::now();
    Lopdf::default().parse(&Source::new(&bytes)).unwrap();
    let lopdf_time = started.elapsed();
    // Enough for lopdf and too short for pdf_oxide. A busy machine may need more, so the time grows.
    let parse_within = |factor: u32| {
        let time = (factor * lopdf_time).max(Duration::from_secs(1));
        let source = Source { deadline: Some(Deadline::after(Clock::Wall, time)), ..Source::new(&bytes) };
        PdfOxide::new(PdfOptions::default()).parse(&source).unwrap()
    };
    let is_complete = |parsed: &Parsed| parsed.text.contains("of page 2000,");
    let parsed = [6, 12, 24].into_iter().map(parse_within).find(is_complete).expect("all pages are read");
    for number in [1, 1000, 2000] {
        assert!(parsed.text.contains(&format!("of page {number},")), "{number}: {:?}", parsed.warnings);
    }
    let is_expected =
        |warning: &String| warning.ends_with(" to 2000 were read by lopdf because time was short");
    assert!(parsed.warnings.iter().all(is_expected) && parsed.warnings.len() <= 1, "{:?}", parsed.warnings);
}

#[test]
fn pages_beyond_the_limit_are_skipped_with_a_warning() {
    let bytes = Pdf::default().page(&line(10, 700, "One.")).page(&line(10, 700, "Two.")).bytes();
    for parser in parsers(&PdfOptions { max_pages: 1, ..PdfOptions::default() }) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        assert_eq!(
            (parsed.text.as_str(), &parsed.warnings[..]),
            ("One.", &["1 page was left out".to_owned()][..])
        );
    }
}

/// An OCR engine that returns fixed text and records the size and the darkest pixel of each image.
#[derive(Debug, Default)]
struct RecordingOcr(Mutex<Vec<(u32, u32, u8)>>);

impl Ocr for RecordingOcr {
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
fn pages_without_text_go_to_ocr() {
    let square = "0 g 100 100 200 200 re f";
    let bytes = Pdf::default().page(square).page(&line(10, 700, "Words.")).page(square).bytes();
    let reader = Arc::new(RecordingOcr::default());
    let options = PdfOptions { ocr: Some(reader.clone()), ocr_pages: 1, ..PdfOptions::default() };
    for parser in rendering_parsers(&options) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        let expected = [("Read from\na picture.", Some(1)), ("All of it.", Some(1)), ("Words.", Some(2))];
        assert_eq!(texts(&parsed, false), expected, "{}", parser.name());
        assert_eq!(
            parsed.warnings,
            ["1 page without text was not read: OCR reads at most 1 pages of a file"]
        );
        let shown = reader.0.lock().unwrap().drain(..).collect::<Vec<_>>();
        assert!(matches!(shown[..], [(1666..=1668, 2221..=2223, 0..=20)]), "{}: {shown:?}", parser.name());
    }
}

#[test]
fn page_without_text_gets_a_warning_if_no_renderer_is_available() {
    let square = "0 g 100 100 200 200 re f";
    let bytes = Pdf::default().page(square).page(&line(10, 700, "Words.")).bytes();
    let options = PdfOptions { ocr: Some(Arc::new(RecordingOcr::default())), ..PdfOptions::default() };
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
        ocr: Some(Arc::new(RecordingOcr::default())),
        ocr_time: Duration::ZERO,
        ..PdfOptions::default()
    };
    for parser in rendering_parsers(&options) {
        let reason = "OCR did not read them all: the time limit of OCR was reached";
        assert_eq!(pictures_error(&*parser, &bytes), format!("{PICTURES}{reason}"), "{}", parser.name());
    }
}

/// How the errors of documents begin whose only text is in pictures.
const PICTURES: &str = "its pages are pictures without text that can be selected, and ";

#[track_caller]
fn pictures_error(parser: &dyn Parser, bytes: &[u8]) -> String {
    let error = parser.parse(&Source::new(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pictures, "{}: {error}", parser.name());
    error.reason()
}

#[test]
fn document_with_only_pictures_is_refused_as_pictures() {
    let bytes = Pdf::default().page("0 g 100 100 200 200 re f").page("").bytes();
    for parser in parsers(&PdfOptions::default()) {
        assert_eq!(pictures_error(&*parser, &bytes), format!("{PICTURES}OCR is off"), "{}", parser.name());
    }
    let blind = PdfOptions { ocr: Some(Arc::new(BlindOcr)), ..PdfOptions::default() };
    for parser in rendering_parsers(&blind) {
        let reason = "OCR found no text of the chosen languages in them";
        assert_eq!(pictures_error(&*parser, &bytes), format!("{PICTURES}{reason}"), "{}", parser.name());
    }
    let reason = "no renderer is available for OCR: the plugin lopdf cannot render pages";
    assert_eq!(pictures_error(&Lopdf::new(blind), &bytes), format!("{PICTURES}{reason}"));
}

#[test]
fn blank_document_is_no_error() {
    check(&Pdf::default().page("").bytes(), |name, parsed| {
        assert_eq!(parsed.warnings, ["1 page has no text (a picture?)"], "{name}");
    });
}

/// An OCR engine that finds no text.
#[derive(Debug)]
struct BlindOcr;

impl Ocr for BlindOcr {
    fn name(&self) -> &'static str {
        "blind"
    }

    fn read(&self, _: &PageImage<'_>, _: Instant) -> Result<String> {
        Ok(String::new())
    }
}

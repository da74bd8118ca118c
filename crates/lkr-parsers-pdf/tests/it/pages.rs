//! Images of pages, and where text is on them.

use std::{collections::BTreeSet, env, path::Path};

use lkr_domain::Parsed;
use lkr_parsers::{ErrorKind, Source};
use lkr_parsers_pdf::{Passage, PdfOptions, PdfPages};
use lkr_test_support::real_data;
use unicode_normalization::UnicodeNormalization;

use crate::common::{LIBRARY, Pdf, line, parsers, pdfium, set};

/// What shows pages, if PDFium's library is available.
fn pages() -> Option<PdfPages> {
    pdfium()?;
    Some(PdfPages::with_pdfium(Path::new(&env::var_os(LIBRARY)?)).unwrap())
}

/// The parts of a text that are on a page.
fn passages(parsed: &Parsed, page: u32) -> Vec<Passage> {
    let position = |byte: usize| u32::try_from(parsed.text[..byte].chars().count()).unwrap();
    let blocks = parsed.blocks.iter().filter(|block| block.page == Some(page));
    let passage = |range: std::ops::Range<usize>| Passage {
        start: position(range.start),
        text: parsed.text[range].to_owned(),
    };
    blocks.map(|block| passage(block.range.clone())).collect()
}

/// A grey image.
struct Image {
    width: usize,
    height: usize,
    grey: Vec<u8>,
}

impl Image {
    fn of(png: &[u8]) -> Self {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        let grey = bytes.chunks(samples).map(|pixel| *pixel.iter().min().unwrap()).collect();
        Self { width: info.width as usize, height: info.height as usize, grey }
    }

    /// The share of dark pixels in a box of a page of this size.
    fn ink(&self, size: (f32, f32), place: [f32; 4]) -> f32 {
        let (x, y) = (self.width as f32 / size.0, self.height as f32 / size.1);
        let [left, upper, right, lower] = place;
        let columns = (left * x) as usize..((right * x).ceil() as usize).min(self.width);
        let rows = (upper * y) as usize..((lower * y).ceil() as usize).min(self.height);
        let area = (columns.len() * rows.len()).max(1);
        let dark = rows.flat_map(|row| columns.clone().map(move |column| (row, column)));
        let dark = dark.filter(|(row, column)| self.grey[row * self.width + column] < 160).count();
        dark as f32 / area as f32
    }
}

/// The words of a page's text with their positions.
fn words(passages: &[Passage]) -> Vec<(std::ops::Range<u32>, String)> {
    let mut words = Vec::new();
    for passage in passages {
        let mut word = (passage.start, String::new());
        for (at, c) in (passage.start..).zip(passage.text.chars().chain([' '])) {
            if !c.is_whitespace() {
                word.1.push(c);
            } else if word.1.is_empty() {
                word.0 = at + 1;
            } else {
                words.push((word.0..at, std::mem::take(&mut word.1)));
                word.0 = at + 1;
            }
        }
    }
    words
}

/// A word without what readers write differently.
fn plain(word: &str) -> String {
    let letters = word.nfkd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    letters.collect()
}

/// How many words of a page there are, how many have boxes, and in how many boxes the same reader reads the word and the
/// image has ink.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Words {
    all: usize,
    placed: usize,
    read_back: usize,
    inked: usize,
}

impl std::ops::AddAssign for Words {
    fn add_assign(&mut self, other: Self) {
        self.all += other.all;
        self.placed += other.placed;
        self.read_back += other.read_back;
        self.inked += other.inked;
    }
}

/// Marks the words of a page one by one.
fn mark_words(pages: &PdfPages, bytes: &[u8], page: u32, parsed: &Parsed) -> Words {
    let passages = passages(parsed, page);
    let placed = pages.place(bytes, page, &passages).unwrap();
    let image = Image::of(&pages.image(bytes, page, 1_000).unwrap());
    let mut counts = Words::default();
    let words = words(&passages).into_iter().filter(|(_, word)| !plain(word).is_empty());
    let (boxes, words): (Vec<_>, Vec<_>) = words.map(|(range, word)| (placed.boxes(range), word)).unzip();
    let reads = pages.letters_in(bytes, page, &boxes).unwrap();
    for ((boxes, word), read) in boxes.into_iter().zip(words).zip(reads) {
        counts.all += 1;
        counts.placed += usize::from(!boxes.is_empty());
        counts.read_back += usize::from(plain(&read) == plain(&word));
        let size = (placed.width, placed.height);
        let has_ink = !boxes.is_empty() && boxes.iter().all(|place| image.ink(size, *place) > 0.005);
        counts.inked += usize::from(has_ink);
    }
    counts
}

/// Asserts that all words of all pages have boxes in which the same reader reads them and the image has ink, whichever
/// parser extracted the text.
#[track_caller]
fn assert_marked(pdf: &Pdf, least_words: usize) {
    let Some(pages) = pages() else { return };
    let bytes = pdf.bytes();
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(&bytes)).unwrap();
        let last = parsed.blocks.iter().filter_map(|block| block.page).max().unwrap();
        let mut counts = Words::default();
        for page in 1..=last {
            counts += mark_words(&pages, &bytes, page, &parsed);
        }
        let all = counts.all;
        assert!(all >= least_words, "{}: {:?}", parser.name(), parsed.text);
        assert_eq!(
            counts,
            Words { all, placed: all, read_back: all, inked: all },
            "{}: {:?}",
            parser.name(),
            parsed.text
        );
    }
}

/// Lines at the corners and in the middle of the visible part of a page.
fn corners() -> String {
    [
        ("northwest", 60, 740),
        ("northeast", 500, 740),
        ("middle of it", 280, 400),
        ("southwest", 60, 60),
        ("southeast", 500, 60),
    ]
    .map(|(words, x, y)| format!("BT /R 12 Tf {x} {y} Td ({words}) Tj ET\n"))
    .concat()
}

#[test]
fn lesson_41_boxes_fit_pages_that_are_displayed_rotated() {
    for turn in [0, 90, 180, 270] {
        assert_marked(&Pdf::default().page(&corners()).entries("", &format!("/Rotate {turn}"), ""), 7);
    }
}

#[test]
fn lesson_41_boxes_fit_pages_that_are_cropped_or_scaled() {
    for entries in [
        "/CropBox [40 40 590 790]",
        "/CropBox [40 40 590 790] /Rotate 90",
        "/CropBox [-50 20 2000 760]",
        "/UserUnit 2",
        "/UserUnit 0.5 /Rotate 270 /CropBox [50 30 580 770]",
    ] {
        assert_marked(&Pdf::default().page(&corners()).entries("", entries, ""), 7);
    }
}

#[test]
fn lesson_41_boxes_fit_columns_hyphens_ligatures_and_upright_text() {
    let column = |x: u32, words: [&str; 3]| {
        let lines = words.iter().zip([600, 588, 576]);
        lines.map(|(words, y)| format!("BT /R 10 Tf {x} {y} Td ({words}) Tj ET\n")).collect::<String>()
    };
    let left = column(
        50,
        ["The tide in the bay of Fundy", "rises by sixteen metres, more", "than anywhere else on earth."],
    );
    let right = column(
        320,
        ["The tide in the bay of Biscay", "is lower, and its inter-", "national ports are open."],
    );
    assert_marked(&Pdf::default().page(&format!("{left}{right}")), 32);
    // Windows-1252 has no ligatures of f, but ae, and the letters of a ligature are looked for one by one.
    assert_marked(
        &Pdf::default().page(&set(700, "\\306on \\344lter na\\357ve caf\\351 \\223quoted\\224")),
        5,
    );
    let upright = "BT /R 12 Tf 0 1 -1 0 300 200 Tm (rising words stand here) Tj ET\n";
    assert_marked(&Pdf::default().page(&format!("{upright}{}", set(700, "level words lie here"))), 8);
}

/// Each letter is a black square.
#[test]
fn lesson_41_boxes_fit_letters_of_a_type_3_font() {
    let glyph = "1000 0 0 0 750 750 d1 0 0 750 750 re f";
    let stream = format!("<< /Length {} >>\nstream\n{glyph}\nendstream", glyph.len());
    let font = "<< /Type /Font /Subtype /Type3 /FontBBox [0 0 750 750] /FontMatrix [0.001 0 0 0.001 0 0] \
        /CharProcs << /a 6 0 R /b 6 0 R >> /Encoding << /Type /Encoding /Differences [97 /a /b] >> /FirstChar 97 \
        /LastChar 98 /Widths [1000 1000] /Resources << >> >>";
    let content = "BT /T 20 Tf 100 500 Td (abba) Tj ET BT /T 20 Tf 100 300 Td (baab) Tj ET";
    let pdf = Pdf::default().object(&stream).object(font).page(content).entries(
        "/Font << /R 3 0 R /T 7 0 R >>",
        "",
        "",
    );
    let Some(pages) = pages() else { return };
    let passage = |start, text: &str| Passage { start, text: text.to_owned() };
    let placed = pages.place(&pdf.bytes(), 1, &[passage(0, "abba"), passage(10, "baab")]).unwrap();
    let image = Image::of(&pages.image(&pdf.bytes(), 1, 1_200).unwrap());
    for (range, read) in [(0..4, "abba"), (10..14, "baab")] {
        let boxes = placed.boxes(range);
        assert_eq!(boxes.len(), 1);
        assert!(image.ink((placed.width, placed.height), boxes[0]) > 0.3, "{boxes:?}");
        assert_eq!(pages.letters_in(&pdf.bytes(), 1, &[boxes]).unwrap(), [read]);
    }
}

#[test]
fn each_line_has_a_box_of_its_own() {
    let Some(pages) = pages() else { return };
    let pdf = Pdf::default().page(&format!("{}{}", line(10, 700, "one two"), line(10, 680, "three")));
    let passage = Passage { start: 5, text: "one two\nthree".to_owned() };
    let placed = pages.place(&pdf.bytes(), 1, &[passage]).unwrap();
    assert_eq!((placed.width, placed.height), (600.0, 800.0));
    assert_eq!(
        [placed.boxes(5..12), placed.boxes(5..18), placed.boxes(18..30)].map(|boxes| boxes.len()),
        [1, 2, 0]
    );
    let [left, upper, right, lower] = placed.boxes(9..12)[0];
    assert!(left > 65.0 && right < 90.0 && upper > 88.0 && lower < 104.0, "{left} {upper} {right} {lower}");
}

#[test]
fn files_without_the_page_are_refused_with_the_reason() {
    let Some(pages) = pages() else { return };
    let bytes = Pdf::default().page(&set(700, "words")).bytes();
    let error = |bytes: &[u8], page| {
        let error = pages.image(bytes, page, 500).unwrap_err();
        assert_eq!(pages.place(bytes, page, &[]).unwrap_err().kind(), error.kind());
        (error.kind(), error.reason())
    };
    for page in [0, 2, u32::MAX] {
        let reason = format!("there is no page {page}: the file has 1 page");
        assert_eq!(error(&bytes, page), (ErrorKind::Input, reason));
    }
    for damaged in [&b"no PDF"[..], b"%PDF-1.4\n%%EOF\n", &bytes[..60]] {
        assert_eq!(error(damaged, 1).0, ErrorKind::Damaged);
    }
}

/// The share of words of real files whose boxes read back as the word, in percent. docs/benchmarks.md#pages has the figures
/// of all files.
const LEAST_READ_BACK: usize = 97;

/// Papers, a manual, letters, invoices and pages printed from the web, with one and two columns.
const REAL_FILES: [&str; 7] = [
    "docling__text_document_01.odt.pdf",
    "markitdown__SPARSE-2024-INV-1234_borderless_table.pdf",
    "markitdown__test.pdf",
    "pdfbox__PDFBOX-2725-878725.pdf",
    "pdfbox__PDFBox.GlobalResourceMergeTest.Doc02.pdf",
    "pdfjs__issue15012.pdf",
    "pdfjs__pdfjs_wikipedia.pdf",
];

#[test]
fn lesson_41_boxes_of_words_in_real_files_contain_the_words_and_ink() {
    let (Some(pages), Some(folder)) = (pages(), real_data("data/files/pdf")) else { return };
    for name in REAL_FILES {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        for parser in parsers(&PdfOptions::default()) {
            let parsed = parser.parse(&Source::new(&bytes)).unwrap();
            let mut counts = Words::default();
            for page in 1..=2.min(parsed.blocks.iter().filter_map(|block| block.page).max().unwrap()) {
                counts += mark_words(&pages, &bytes, page, &parsed);
            }
            let Words { all, placed, read_back, inked } = counts;
            assert!(read_back * 100 >= all * LEAST_READ_BACK, "{name}: {}: {counts:?}", parser.name());
            assert!(inked * 100 >= placed * 99, "{name}: {}: {counts:?}", parser.name());
        }
    }
}

/// Prints the figures of docs/benchmarks.md#pages: of up to four pages of each file.
#[test]
#[ignore = "measures; asserts nothing"]
fn words_of_all_real_files_are_marked() {
    let (Some(pages), Some(folder)) = (pages(), real_data("data/files/pdf")) else { return };
    let library =
        PdfOptions { pdfium_library: env::var_os(LIBRARY).map(Into::into), ..PdfOptions::default() };
    for parser in parsers(&library).into_iter().skip(1) {
        let (mut sum, mut of_most) = (Words::default(), Words::default());
        for entry in std::fs::read_dir(&folder).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            let Ok(parsed) = parser.parse(&Source::new(&bytes)) else { continue };
            let last = parsed.blocks.iter().filter_map(|block| block.page).max().unwrap_or_default();
            let shown = BTreeSet::from([1, 2, last / 2 + 1, last])
                .into_iter()
                .filter(|page| (1..=last).contains(page));
            let mut counts = Words::default();
            for page in shown.filter(|page| pages.place(&bytes, *page, &[]).is_ok()) {
                counts += mark_words(&pages, &bytes, page, &parsed);
            }
            sum += counts;
            if counts.placed * 2 >= counts.all {
                of_most += counts;
            }
        }
        eprintln!("{}: {sum:?}; of files with places of most words: {of_most:?}", parser.name());
    }
}

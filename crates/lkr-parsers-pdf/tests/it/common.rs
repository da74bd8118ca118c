//! PDF files for tests, written object by object, and the parsers under test.

use std::{env, path::Path, sync::Arc};

use lkr_domain::{BlockKind, Parsed};
use lkr_parsers::{Error, ErrorKind, Parser, Result, Source};
use lkr_parsers_pdf::{Lopdf, PdfOptions, PdfOxide, Pdfium};

/// The variable that names the library of PDFium.
pub(crate) const LIBRARY: &str = "LKR_PDFIUM_LIBRARY";

/// PDFium, if its library is available. Its absence is a failure in CI.
pub(crate) fn pdfium() -> Option<Pdfium> {
    let Some(path) = env::var_os(LIBRARY) else {
        lkr_test_support::skip(&format!("{LIBRARY} does not name PDFium's library"));
        return None;
    };
    Some(Pdfium::load(Path::new(&path)).unwrap())
}

/// Every parser that is available. pdf_oxide comes without a renderer, and with PDFium's if its library is available.
pub(crate) fn parsers(options: &PdfOptions) -> Vec<Arc<dyn Parser>> {
    let mut parsers: Vec<Arc<dyn Parser>> =
        vec![Arc::new(PdfOxide::new(options.clone())), Arc::new(Lopdf::new(options.clone()))];
    parsers.extend(rendering_parsers(options));
    parsers
}

/// Every available parser that can render pages.
pub(crate) fn rendering_parsers(options: &PdfOptions) -> Vec<Arc<dyn Parser>> {
    let Some(pdfium) = pdfium() else { return Vec::new() };
    let library = PdfOptions { pdfium_library: env::var_os(LIBRARY).map(Into::into), ..options.clone() };
    vec![Arc::new(pdfium.with_options(options.clone())), Arc::new(PdfOxide::new(library))]
}

/// PDFium, or a parser that rejects every file if the library is absent.
#[derive(Debug)]
pub(crate) struct OptionalPdfium(pub(crate) Option<Pdfium>);

impl Parser for OptionalPdfium {
    fn name(&self) -> &'static str {
        "pdfium"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        match &self.0 {
            Some(pdfium) => pdfium.parse(source),
            None => Err(Error::new(ErrorKind::Internal, "parse", "no library")),
        }
    }
}

/// The levels, titles and pages of all headings.
pub(crate) fn headings(parsed: &Parsed) -> Vec<(u8, &str, Option<u32>)> {
    let heading = |kind| match kind {
        &BlockKind::Heading { level, ref title } => Some((level, title.as_str())),
        _ => None,
    };
    let headings = parsed.blocks.iter().filter_map(|block| Some((heading(&block.kind)?, block.page)));
    headings.map(|((level, title), page)| (level, title, page)).collect()
}

/// The texts and pages of the blocks that are, or are not, furniture.
pub(crate) fn texts(parsed: &Parsed, furniture: bool) -> Vec<(&str, Option<u32>)> {
    let blocks = parsed.blocks.iter().filter(|block| block.furniture == furniture);
    blocks.map(|block| (&parsed.text[block.range.clone()], block.page)).collect()
}

/// Graphics states: `F` makes fills transparent, `S` strokes, `N` both; `O` makes both opaque.
pub(crate) const STATES: &str =
    "/ExtGState << /F << /ca 0 >> /S << /CA 0.01 >> /N << /ca 0 /CA 0 >> /O << /ca 1 /CA 1 >> >>";

/// The warning that hidden text was removed.
pub(crate) const HIDDEN_TEXT_WARNING: &str = "hidden text was left out";

/// Calls `expect` with the name and the result of every parser.
pub(crate) fn check(bytes: &[u8], expect: impl Fn(&str, &Parsed)) {
    for parser in parsers(&PdfOptions::default()) {
        let parsed = parser.parse(&Source::new(bytes)).unwrap();
        lkr_parsers::conformance::assert_well_formed(&parsed);
        expect(parser.name(), &parsed);
    }
}

/// Asserts that every parser reads exactly these words, and that it warns of hidden text if `hides`.
#[track_caller]
pub(crate) fn reads(pdf: &Pdf, words: &str, hides: bool) {
    check(&pdf.bytes(), |name, parsed| {
        let found: Vec<&str> = parsed.text.split_whitespace().collect();
        assert_eq!(found.join(" "), words, "{name}");
        assert_eq!(
            parsed.warnings.iter().any(|warning| warning == HIDDEN_TEXT_WARNING),
            hides,
            "{name}: {:?}",
            parsed.warnings
        );
    });
}

/// A line of 10 points in the regular font at height `y`.
pub(crate) fn set(y: u32, words: &str) -> String {
    line(10, y, words)
}

/// Builds a PDF file with pages of 600 by 800 points and the fonts `R` (regular) and `B` (bold).
#[derive(Default)]
pub(crate) struct Pdf {
    pages: Vec<String>,
    outline: Vec<(usize, String, usize, f32)>,
    objects: Vec<String>,
    resources: String,
    page_entries: String,
    catalog: String,
}

/// A line in the regular font with this size at height `y`.
pub(crate) fn line(size: u32, y: u32, text: &str) -> String {
    format!("BT /R {size} Tf 50 {y} Td ({text}) Tj ET\n")
}

/// Text in this font and size at this position.
pub(crate) fn text(font: char, size: u32, (x, y): (u32, u32), text: &str) -> String {
    format!("BT /{font} {size} Tf {x} {y} Td ({text}) Tj ET\n")
}

impl Pdf {
    /// Adds a page with this content.
    pub(crate) fn page(mut self, content: &str) -> Self {
        self.pages.push(content.to_owned());
        self
    }

    /// Adds an object; the first one has the number 6.
    pub(crate) fn object(mut self, object: &str) -> Self {
        self.objects.push(object.to_owned());
        self
    }

    /// Adds a form with these entries and this content as an object.
    pub(crate) fn form(self, entries: &str, content: &str) -> Self {
        self.form_with(&format!("/BBox [0 0 600 800] {entries}"), "", content)
    }

    /// Adds a form with these entries (including its box), these resources in addition to fonts, and this content.
    pub(crate) fn form_with(self, entries: &str, resources: &str, content: &str) -> Self {
        let length = content.len();
        self.object(&format!(
            "<< /Type /XObject /Subtype /Form {entries} /Resources << /Font << /R 3 0 R >> {resources} >> \
             /Length {length} >>\nstream\n{content}\nendstream"
        ))
    }

    /// Sets additional entries of the resources of every page, of every page, and of the catalog.
    pub(crate) fn entries(self, resources: &str, page_entries: &str, catalog: &str) -> Self {
        let [resources, page_entries, catalog] = [resources, page_entries, catalog].map(str::to_owned);
        Self { resources, page_entries, catalog, ..self }
    }

    /// Adds an entry of the outline. `depth` and `page` count from 0; `top` is the height of the destination.
    pub(crate) fn entry(mut self, depth: usize, title: &str, page: usize, top: f32) -> Self {
        self.outline.push((depth, title.to_owned(), page, top));
        self
    }

    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut objects = vec![String::new(); 5];
        objects.extend(self.objects.iter().cloned());
        let (resources, page_entries, catalog) = (&self.resources, &self.page_entries, &self.catalog);
        let first_page = objects.len() + 1;
        for content in &self.pages {
            let stream = objects.len() + 2;
            objects.push(format!(
                "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents {stream} 0 R \
                 {page_entries} /Resources << /Font << /R 3 0 R /B 4 0 R >> {resources} >> >>"
            ));
            objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
        }
        let page = |index: usize| first_page + 2 * index;
        let kids: String = (0..self.pages.len()).map(|index| format!("{} 0 R ", page(index))).collect();
        let first_entry = objects.len() + 1;
        for at in 0..self.outline.len() {
            objects.push(self.outline_item(at, first_entry, &page));
        }
        let outlines = if self.outline.is_empty() { "" } else { "/Outlines 5 0 R" };
        objects[0] = format!("<< /Type /Catalog /Pages 2 0 R {outlines} {catalog} >>");
        objects[1] = format!("<< /Type /Pages /Count {} /Kids [{kids}] >>", self.pages.len());
        objects[2] = font("Helvetica");
        objects[3] = font("Helvetica-Bold");
        objects[4] = format!("<< /Type /Outlines /First {first_entry} 0 R >>");
        write(&objects)
    }

    fn outline_item(&self, at: usize, first: usize, page: &dyn Fn(usize) -> usize) -> String {
        let (depth, title, target, top) = &self.outline[at];
        let after = self.outline.iter().enumerate().skip(at + 1);
        let next =
            after.clone().take_while(|(_, entry)| entry.0 >= *depth).find(|(_, entry)| entry.0 == *depth);
        let next = next.map(|(next, _)| format!("/Next {} 0 R", first + next)).unwrap_or_default();
        let child = after.clone().next().filter(|(_, entry)| entry.0 > *depth);
        let child = child.map(|(child, _)| format!("/First {} 0 R", first + child)).unwrap_or_default();
        let page = page(*target);
        format!("<< /Title ({title}) /Parent 5 0 R {next} {child} /Dest [{page} 0 R /XYZ 0 {top} 0] >>")
    }
}

fn font(name: &str) -> String {
    format!("<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>")
}

fn write(objects: &[String]) -> Vec<u8> {
    let mut file = String::from("%PDF-1.7\n");
    let mut offsets = Vec::new();
    for (number, object) in (1..).zip(objects) {
        offsets.push(file.len());
        file.push_str(&format!("{number} 0 obj\n{object}\nendobj\n"));
    }
    let table = file.len();
    file.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    for offset in offsets {
        file.push_str(&format!("{offset:010} 00000 n \n"));
    }
    let count = objects.len() + 1;
    file.push_str(&format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n"));
    file.into_bytes()
}

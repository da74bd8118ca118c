//! Showing pages of stored files: the image of a page, and where a text is on it.

use std::time::Duration;

use lkr_domain::{Block, Document};
use lkr_parsers::{Error, ErrorKind, Result, Source, decode_blocks};
use lkr_parsers_pdf::{Passage, PdfPages, PlacedLetter, PlacedText};
use lkr_sandbox::{FileSource, FileViewer, Limits};
use serde::{Deserialize, Serialize};

use super::{FileReader, plugins::FileTools, worker::plan_error};
use crate::{KnowledgeBase, error::During};

/// The processor time of showing a page. Chosen, not measured: see docs/benchmarks.md#pages for what pages take.
const TIME: Duration = Duration::from_secs(8);

/// The largest image of a page in bytes. Chosen, not measured: a page of 8,000,000 random pixels has 24 MB.
const MAX_BYTES: u64 = 32 * 1024 * 1024;

/// Text of a page beyond this many bytes has no places. Chosen, not measured: a dense page of a newspaper has 30 kB.
const MAX_TEXT_BYTES: usize = 256 * 1024;

/// What a worker opens its viewer from.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct PagePlan {
    tools: FileTools,
    page: u32,
    view: PageView,
}

/// What is shown of a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum PageView {
    /// Its image, of this width in pixels.
    Image { width: u32 },
    /// The places of its text.
    Places { passages: Vec<(u32, String)> },
}

/// The places of a text as a worker writes them: the size of the page, and the position, line and place of each letter.
#[derive(Debug, Serialize, Deserialize)]
struct PlacesRecord {
    size: (f32, f32),
    letters: Vec<(u32, u32, [f32; 4])>,
}

impl FileTools {
    /// What shows pages of PDF files here; `None` if nothing does.
    #[must_use]
    pub fn page_reader(&self) -> Option<&'static str> {
        self.pdfium.as_ref().map(|_| "pdfium")
    }
}

impl FileReader {
    /// A page of a PDF file as a PNG image of this width in pixels, in the turn of an account. Pages count from 1. An image
    /// that had too many pixels is smaller.
    ///
    /// # Errors
    /// `Invalid` if the page cannot be shown, `NotFound` if nothing shows pages, `Overloaded` if too many files wait.
    pub async fn page_image(
        &self,
        account: &str,
        source: FileSource,
        page: u32,
        width: u32,
    ) -> crate::Result<Vec<u8>> {
        self.view_page(account, source, page, PageView::Image { width }).await
    }

    /// Where a text is on its page of a PDF file, in the turn of an account. The same reader shows the image of the page.
    ///
    /// # Errors
    /// As [`page_image`](Self::page_image).
    pub async fn page_places(
        &self,
        account: &str,
        source: FileSource,
        page: u32,
        passages: Vec<Passage>,
    ) -> crate::Result<PlacedText> {
        let passages = passages.into_iter().map(|passage| (passage.start, passage.text)).collect();
        let bytes = self.view_page(account, source, page, PageView::Places { passages }).await?;
        let record: PlacesRecord = serde_json::from_slice(&bytes)
            .map_err(|error| crate::Error::new(crate::ErrorKind::Internal, SHOW, error))?;
        Ok(record.into())
    }

    async fn view_page(
        &self,
        account: &str,
        source: FileSource,
        page: u32,
        view: PageView,
    ) -> crate::Result<Vec<u8>> {
        if self.tools().page_reader().is_none() {
            let reason = "nothing here shows pages of PDF files: PDFium's library was not found";
            return Err(crate::Error::new(crate::ErrorKind::NotFound, SHOW, reason));
        }
        let plan = PagePlan { tools: self.tools().clone(), page, view };
        let plan = serde_json::to_value(plan)
            .map_err(|error| crate::Error::new(crate::ErrorKind::Internal, SHOW, error))?;
        let limits =
            Limits { time: TIME, ocr_time: Duration::ZERO, output: MAX_BYTES, ..self.current_limits() };
        // Pages take turns with the files of the account, so that a page need not wait for all of them.
        self.sandbox().view_for(&format!("pages of {account}"), plan, source, limits).await.during(SHOW)
    }
}

/// The operation of errors.
const SHOW: &str = "show a page";

impl KnowledgeBase {
    /// The parts of a document's extracted text that are on a page. A text that was not extracted from a file is on no page.
    ///
    /// # Errors
    /// `Conflict` if the document was replaced or deleted meanwhile.
    pub async fn page_passages(&self, document: &Document, page: u32) -> crate::Result<Vec<Passage>> {
        let read = self.read_page_passages(document, page).await;
        if read.is_err() && !self.is_current(document).await? {
            return Err(crate::Error::new(
                crate::ErrorKind::Conflict,
                READ_TEXT,
                "the document changed meanwhile",
            ));
        }
        read.during(READ_TEXT)
    }

    async fn read_page_passages(&self, document: &Document, page: u32) -> lkr_catalog::Result<Vec<Passage>> {
        let (texts, doc_id, revision) = (&self.shared.texts, document.doc_id, document.revision);
        if !texts.has_blocks(doc_id, revision).await? {
            return Ok(Vec::new());
        }
        let text = texts.get(doc_id, revision, Some(&document.content_sha256)).await?;
        let blocks = texts.blocks(doc_id, revision, None).await?;
        let find = move || decode_blocks(&blocks, &text).map(|blocks| passages_of(&text, &blocks, page));
        let corrupt = |error: &dyn std::fmt::Display| {
            lkr_catalog::Error::new(lkr_catalog::ErrorKind::Corrupt, READ_TEXT, error.to_string())
        };
        let found = tokio::task::spawn_blocking(find).await.map_err(|error| corrupt(&error))?;
        found.map_err(|error| corrupt(&error))
    }

    /// Whether a document still has this revision.
    async fn is_current(&self, document: &Document) -> crate::Result<bool> {
        let current = self.document(document.doc_id).await?;
        Ok(current.is_some_and(|current| current.revision == document.revision))
    }
}

/// The operation of errors of reading a page's text.
const READ_TEXT: &str = "read the text of a page";

/// The parts of a text that are on a page, up to [`MAX_TEXT_BYTES`].
fn passages_of(text: &str, blocks: &[Block], page: u32) -> Vec<Passage> {
    let (mut passages, mut bytes) = (Vec::new(), 0);
    let (mut counted, mut start) = (0, 0_u32);
    let is_on_page = |block: &&Block| block.page == Some(page);
    for block in blocks.iter().filter(is_on_page) {
        let (Some(before), Some(part)) =
            (text.get(counted..block.range.start), text.get(block.range.clone()))
        else {
            continue;
        };
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        bytes += part.len();
        if bytes > MAX_TEXT_BYTES {
            break;
        }
        start = start.saturating_add(count(before));
        passages.push(Passage { start, text: part.to_owned() });
        (counted, start) = (block.range.end, start.saturating_add(count(part)));
    }
    passages
}

/// Shows a page, with a reader that was opened before the file is read.
#[derive(Debug)]
pub(super) struct PageViewer {
    pages: PdfPages,
    page: u32,
    view: PageView,
}

impl PageViewer {
    pub(super) fn open(plan: serde_json::Value) -> Result<Self> {
        let PagePlan { tools, page, view } = serde_json::from_value(plan).map_err(plan_error)?;
        let missing = || Error::new(ErrorKind::Internal, "open viewer", "pdfium was not found");
        let pages = PdfPages::with_pdfium(&tools.pdfium.ok_or_else(missing)?)?;
        Ok(Self { pages, page, view })
    }
}

impl FileViewer for PageViewer {
    fn view(&self, source: &Source<'_>) -> Result<Vec<u8>> {
        match &self.view {
            PageView::Image { width } => self.pages.image(source.bytes, self.page, *width),
            PageView::Places { passages } => {
                let passage = |(start, text): &(u32, String)| Passage { start: *start, text: text.clone() };
                let passages: Vec<Passage> = passages.iter().map(passage).collect();
                let placed = self.pages.place(source.bytes, self.page, &passages)?;
                let encoded = serde_json::to_vec(&PlacesRecord::from(placed));
                encoded.map_err(|error| Error::new(ErrorKind::Internal, "write the places of a text", error))
            }
        }
    }
}

impl From<PlacedText> for PlacesRecord {
    fn from(placed: PlacedText) -> Self {
        // A hundredth of a point is less than a pixel at every width.
        let rounded = |length: f32| (length * 100.0).round() / 100.0;
        let letter = |letter: PlacedLetter| (letter.at, letter.line, letter.place.map(rounded));
        Self {
            size: (placed.width, placed.height),
            letters: placed.letters.into_iter().map(letter).collect(),
        }
    }
}

impl From<PlacesRecord> for PlacedText {
    fn from(record: PlacesRecord) -> Self {
        // A worker is not trusted. JSON has no infinity, but numbers that are too large for these.
        let is_finite = |(_, _, place): &(u32, u32, [f32; 4])| place.iter().all(|edge| edge.is_finite());
        let letter = |(at, line, place)| PlacedLetter { at, line, place };
        Self {
            width: record.size.0.min(f32::MAX),
            height: record.size.1.min(f32::MAX),
            letters: record.letters.into_iter().filter(is_finite).map(letter).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use lkr_domain::BlockKind;
    use lkr_parsers::Composer;

    use super::*;

    #[test]
    fn passages_of_a_page_have_their_positions_in_code_points() {
        let mut composer = Composer::new();
        composer.push(BlockKind::Paragraph, "Größe", Some(1)).unwrap();
        composer.push_furniture(BlockKind::Paragraph, "foot", Some(2)).unwrap();
        composer.push(BlockKind::Paragraph, "zwölf", Some(2)).unwrap();
        let parsed = composer.finish().unwrap();
        let texts: Vec<(u32, String)> = passages_of(&parsed.text, &parsed.blocks, 2)
            .into_iter()
            .map(|passage| (passage.start, passage.text))
            .collect();
        assert_eq!(texts, [(7, "zwölf".to_owned()), (14, "foot".to_owned())]);
        assert!(passages_of(&parsed.text, &parsed.blocks, 3).is_empty());
    }
}

//! A document that is being ingested: parsed and layered, its points made in batches.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use lkr_catalog::{Task, TaskInput, check_text, keep_record, tags_of};
use lkr_domain::{
    Counts, DocId, Document, Fingerprint, Layer, Layered, Parsed, hex, is_markup, stem_and_suffix,
};
use lkr_layers::{LayerOptions, layer_with_terms};
use lkr_models::{SparseEncoder, average_terms};
use lkr_parsers::{MAX_TEXT_BYTES, Parser, Source, decode_blocks};
use lkr_vectors::{Point, Tags};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::{
    Error, ErrorKind, Result,
    char_index::CharIndex,
    draft_body::{DraftBody, DraftPoint, unindexed_title},
    fingerprint::fingerprint,
    section::{Section, SectionSummary},
    text_budget::TextPermit,
};

/// The future record of a document, and its layers. Points are made from them batch by batch, because all of them together
/// would take many times the memory of the text.
pub(crate) struct DocumentDraft {
    pub(crate) document: Document,
    /// The tags of all points.
    pub(crate) tags: Tags,
    body: Arc<DraftBody>,
    _permit: TextPermit,
}

/// A text as it is stored.
pub(crate) struct StoredText {
    pub(crate) text: String,
    /// Its encoded blocks, if it was extracted from a file.
    pub(crate) blocks: Option<Bytes>,
}

impl StoredText {
    fn parse(self, parser: &dyn Parser) -> Result<Parsed> {
        let Self { text, blocks } = self;
        let Some(blocks) = blocks else {
            let parsed = parser.parse(&Source::from(text.as_str()));
            return parsed.map_err(|error| Error::new(ErrorKind::Invalid, "parse", error));
        };
        let blocks = decode_blocks(&blocks, &text);
        let blocks = blocks.map_err(|error| Error::new(ErrorKind::Unreadable, "read blocks", error))?;
        Ok(Parsed { text, blocks, warnings: Vec::new() })
    }
}

/// Parses a text and takes its fingerprint, in a blocking task.
///
/// # Errors
/// `Invalid` for a blank text, of which no document can be made. Texts are checked when they are submitted, but those of files only by
/// who reads the files.
pub(crate) async fn parse(parser: &Arc<dyn Parser>, text: StoredText) -> Result<(Parsed, Fingerprint)> {
    let parser = Arc::clone(parser);
    tokio::task::spawn_blocking(move || {
        let parsed = text.parse(&*parser)?;
        check_text(&parsed.text, MAX_TEXT_BYTES)
            .map_err(|blank| Error::new(ErrorKind::Invalid, "parse document", blank))?;
        let fingerprint = fingerprint(&parsed.text);
        Ok((parsed, fingerprint))
    })
    .await?
}

/// Layers a parsed text, in a blocking task. `now` is when the document is made. Returns the draft and warnings.
pub(crate) async fn draft_document(
    sparse: SparseEncoder,
    task: &Task,
    parsed: Parsed,
    fingerprint: Fingerprint,
    now: OffsetDateTime,
    permit: TextPermit,
) -> Result<(DocumentDraft, Vec<String>)> {
    let cancelled = CancellationToken::new();
    let _cancel_on_drop = cancelled.clone().drop_guard();
    let (doc_id, task) = (task.doc_id()?, task.clone());
    tokio::task::spawn_blocking(move || {
        let title_is_file_name = is_named_by_file(&task.input);
        let options = LayerOptions { title_is_file_name, ..LayerOptions::default() };
        let (layered, terms) = layer_with_terms(&parsed, &task.input.title, &options);
        let document = new_document(doc_id, &task, &parsed.text, &layered, fingerprint, now);
        if cancelled.is_cancelled() {
            return Err(Error::new(ErrorKind::Superseded, "layer", "the task was cancelled"));
        }
        let name = unindexed_title(&layered.root).unwrap_or_default();
        let full_text = [name, &layered.root.indexed_title.text, &parsed.body()].join("\n");
        let root = sparse.part(&full_text, &terms, average_terms(Layer::L1));
        let Parsed { text, warnings, .. } = parsed;
        let warnings = task.input.warnings.into_iter().chain(warnings).collect();
        let (tags, index) = (tags_of(&document), CharIndex::new(&text));
        let revision = document.revision;
        let body = DraftBody { doc_id, revision, text, index, layered, root, terms, sparse };
        Ok((DocumentDraft { document, tags, body: Arc::new(body), _permit: permit }, warnings))
    })
    .await?
}

/// Whether the title says no more than the name of the uploaded page of markup.
fn is_named_by_file(input: &TaskInput) -> bool {
    let name = input.original.as_ref().map(|original| original.file_name.as_str());
    name.is_some_and(|name| is_markup(name) && stem_and_suffix(name).0.trim() == input.title.trim())
}

fn new_document(
    doc_id: DocId,
    task: &Task,
    text: &str,
    layered: &Layered,
    fingerprint: Fingerprint,
    now: OffsetDateTime,
) -> Document {
    let root = layered.root.clone();
    Document {
        doc_id,
        space: task.space.clone().unwrap_or_default(),
        revision: task.input.revision,
        title: root.title,
        source: task.input.source.clone(),
        summary: root.summary,
        keywords: root.keywords,
        category: String::new(),
        language: root.language,
        metadata: task.input.metadata.clone(),
        counts: Counts {
            l1: 1,
            l2: layered.l2.len() as u64,
            l3: layered.l3.len() as u64,
            chunks: layered.chunks.len() as u64,
        },
        char_count: root.char_count,
        content_sha256: hex(&Sha256::digest(text)),
        created_at: now,
        updated_at: now,
        created_by: task.created_by.clone(),
        category_by_hand: false,
        original: task.input.original.clone(),
        fingerprint: Some(fingerprint),
    }
}

impl DocumentDraft {
    /// The number of points of a layer.
    pub(crate) fn count(&self, layer: Layer) -> u32 {
        u32::try_from(self.document.counts.of(layer)).unwrap_or(u32::MAX)
    }

    /// The ordinals of the L2 and the L3 node that a chunk lies in.
    pub(crate) fn parents(&self, chunk: u32) -> Option<(u32, u32)> {
        self.body.parents(chunk)
    }

    /// Makes points of some layers, in a blocking task.
    pub(crate) async fn points<const N: usize>(
        &self,
        parts: [(Layer, Range<u32>); N],
    ) -> Result<[Vec<DraftPoint>; N]> {
        if parts.iter().all(|(_, ordinals)| ordinals.is_empty()) {
            return Ok(std::array::from_fn(|_| Vec::new()));
        }
        self.compute(move |body| parts.map(|(layer, ordinals)| body.points(layer, ordinals))).await
    }

    /// A section to be described.
    pub(crate) async fn section(&self, ordinal: u32) -> Result<Section> {
        self.compute(move |body| body.section(ordinal)).await
    }

    /// The document as one section to be described.
    pub(crate) async fn whole_document(&self) -> Result<Section> {
        self.compute(DraftBody::whole_document).await
    }

    async fn compute<T: Send + 'static>(
        &self,
        compute: impl FnOnce(&DraftBody) -> T + Send + 'static,
    ) -> Result<T> {
        let body = Arc::clone(&self.body);
        Ok(tokio::task::spawn_blocking(move || compute(&body)).await?)
    }

    /// Replaces the extracted summaries and keywords of sections, of their parts and of the document.
    pub(crate) fn set_summaries(&mut self, summaries: Vec<SectionSummary>) -> Result<()> {
        let shared = || Error::new(ErrorKind::Internal, "describe", "points are being made already");
        let DraftBody { layered, .. } = Arc::get_mut(&mut self.body).ok_or_else(shared)?;
        for SectionSummary { layer, ordinal, description, parts } in summaries {
            if layer == Layer::L1 {
                layered.root.summary.clone_from(&description.summary);
                self.document.summary = description.summary;
                if !description.keywords.is_empty() {
                    layered.root.keywords.clone_from(&description.keywords);
                    self.document.keywords = description.keywords;
                }
                continue;
            }
            if let Some(node) = layered.l2.get_mut(ordinal as usize) {
                node.summary = description.summary;
            }
            let parts = parts.into_iter().zip(description.parts);
            for (ordinal, summary) in parts.filter(|(_, summary)| !summary.is_empty()) {
                if let Some(node) = layered.l3.get_mut(ordinal as usize) {
                    node.summary = summary;
                }
            }
        }
        Ok(())
    }

    /// Takes over when and by whom the document that is replaced was added. These are tags, too, and points that are
    /// stored with them need not be changed when the document is published.
    pub(crate) fn keep_creation_of(&mut self, before: &Document) {
        self.document.created_at = before.created_at;
        self.document.created_by = before.created_by.clone();
        self.tags = tags_of(&self.document);
    }

    pub(crate) fn set_category(&mut self, category: String) {
        self.document.category = category;
        self.tags = tags_of(&self.document);
    }

    /// The point to store.
    pub(crate) fn finish(&self, point: DraftPoint, dense: Option<Vec<f32>>) -> Point {
        point.finish(&self.tags, dense)
    }

    /// The L1 point to store. From it the record can be restored.
    pub(crate) fn finish_root(&self, mut point: DraftPoint, dense: Option<Vec<f32>>) -> Point {
        keep_record(&mut point.source, &self.document);
        point.finish(&self.tags, dense)
    }
}

#[cfg(test)]
mod tests {
    use lkr_domain::Original;

    use super::*;

    #[test]
    fn title_of_a_file_is_its_name_if_it_says_no_more() {
        let original = |file_name: &str| Original {
            path: String::new(),
            file_name: file_name.to_owned(),
            size_bytes: 1,
            sha256: None,
        };
        for (title, file_name, expected) in [
            ("tides", Some("tides.md"), true),
            (" tides ", Some("C:\\sea\\tides.md"), true),
            ("Tides", Some("tides.md"), false),
            ("tides.md", Some("tides.md"), false),
            ("tides", Some("tides.pdf"), false),
            ("tides", Some("tides.docx"), false),
            ("tides", None, false),
        ] {
            let original = file_name.map(original);
            let input = TaskInput { title: title.to_owned(), original, ..TaskInput::default() };
            assert_eq!(is_named_by_file(&input), expected, "{title:?} of {file_name:?}");
        }
    }
}

use std::ops::Range;

use lkr_domain::{Chunk, Layered, Node, PageSpan, Parsed, Root};
use lkr_text::{DocumentTerms, Language, detect};

use crate::{
    chunk::{Budget, chunks},
    keyword::keywords,
    offsets::Offsets,
    outline::Outline,
    section::{Plan, Section, sections},
    summary::{Limits, Summaries},
    terms::Terms,
    title::{document_title, first_words},
};

/// Limits of the summary of a document.
const ROOT_SUMMARY: Limits = Limits { sentences: 3, chars: 400 };

/// Limits of the summary of a node.
const NODE_SUMMARY: Limits = Limits { sentences: 2, chars: 240 };

/// Options of [`layer`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerOptions {
    /// The target size of a chunk in estimated tokens: 200 by default, at least 32. No chunk exceeds 1.15 times the
    /// target. In languages other than English that separate words by spaces, the target is seven tenths of it. See
    /// docs/studies.md#chunk-size.
    pub chunk_tokens: u32,
    /// Whether the title is only the name of a file: false by default. Nodes and chunks are then indexed with the title
    /// that the text gives itself, as they are without a title. See docs/studies.md#indexed-text.
    pub title_is_file_name: bool,
}

impl Default for LayerOptions {
    fn default() -> Self {
        Self { chunk_tokens: 200, title_is_file_name: false }
    }
}

/// Builds the layers of a parsed document. `title` is the title that the client gave; it may be blank.
///
/// A pure function in linear time. Text that is not blank has at least one L2 node, one L3 node and one chunk; blank
/// text has none.
#[must_use]
pub fn layer(parsed: &Parsed, title: &str, options: &LayerOptions) -> Layered {
    layer_with_terms(parsed, title, options).0
}

/// [`layer`], and the terms of the words of the document, from which the sparse vectors of its layers are made.
#[must_use]
pub fn layer_with_terms(parsed: &Parsed, title: &str, options: &LayerOptions) -> (Layered, DocumentTerms) {
    let text = parsed.text.as_str();
    let language = detect(&parsed.body());
    let budget = budget(options, language);
    let outline = Outline::new(parsed, title, budget.most);
    let mut document_terms = DocumentTerms::new(language);
    let terms = Terms::new(text, &outline.units, &mut document_terms);
    // What the layers are indexed with beside their units.
    std::iter::once(title)
        .chain(outline.headings.iter().map(|heading| heading.title))
        .for_each(|title| document_terms.learn(title, |_| {}));
    let writer = Writer {
        text,
        outline: &outline,
        offsets: Offsets::new(text),
        pages: pages(parsed),
        summaries: Summaries { text, outline: &outline, terms: &terms },
    };
    let root = writer.root(title, options.title_is_file_name, &document_terms);
    let mut layered = Layered { root, l2: Vec::new(), l3: Vec::new(), chunks: Vec::new() };
    for section in sections(&outline, &terms) {
        writer.section(&section, budget, &mut layered);
    }
    (layered, document_terms)
}

/// The budget of chunks in a language. Vocabularies contain fewer whole words of other languages than English, so the
/// estimate is too low for them; for all-MiniLM-L6-v2 by half in French and German.
fn budget(options: &LayerOptions, language: Option<Language>) -> Budget {
    let target = options.chunk_tokens.clamp(32, 100_000);
    let english = language.is_none_or(|language| language == Language::ENGLISH);
    let spaceless =
        language.is_some_and(|language| matches!(language.code(), "zh" | "ja" | "ko" | "th" | "km" | "my"));
    let target = if english || spaceless { target * 100 } else { target * 70 };
    Budget { target, most: target / 100 * 115 }
}

/// Converts plans to nodes and chunks.
struct Writer<'a> {
    text: &'a str,
    outline: &'a Outline<'a>,
    offsets: Offsets<'a>,
    /// The byte offset and number of each page, ordered by offset.
    pages: Vec<(usize, u32)>,
    summaries: Summaries<'a>,
}

impl Writer<'_> {
    fn root(&self, title: &str, is_file_name: bool, terms: &DocumentTerms) -> Root {
        let title = document_title(title, self.text, self.outline);
        let own = self.outline.own_title().filter(|_| is_file_name);
        Root {
            summary: self.summaries.of(&(0..self.outline.units.len()), ROOT_SUMMARY),
            keywords: keywords(self.text, &title, self.outline, terms),
            language: terms.language().map_or("", Language::code).to_owned(),
            char_count: self.offsets.char_at(self.text.len()),
            indexed_title: own.unwrap_or_else(|| title.as_str().into()),
            title,
        }
    }

    /// Appends an L2 node, its L3 nodes and their chunks.
    fn section(&self, section: &Section, budget: Budget, layered: &mut Layered) {
        let parent = layered.l2.len() as u32;
        layered.l2.push(self.node(&section.node, parent, None));
        for passage in &section.passages {
            let ordinal = layered.l3.len() as u32;
            layered.l3.push(self.node(passage, ordinal, Some(parent)));
            for units in chunks(&self.outline.units, &passage.units, budget) {
                let next = layered.chunks.len() as u32;
                layered.chunks.extend(self.chunk(&units, next, ordinal));
            }
        }
    }

    fn node(&self, plan: &Plan, ordinal: u32, parent: Option<u32>) -> Node {
        let range = self.node_range(plan);
        let heading = plan.heading.and_then(|at| self.outline.headings.get(at));
        let title = heading.map(|heading| heading.title.to_owned());
        Node {
            ordinal,
            parent,
            title: title.unwrap_or_else(|| first_words(self.text, self.outline, &plan.units)),
            summary: self.summaries.of(&plan.units, NODE_SUMMARY),
            path: self.outline.path(plan.under),
            span: self.offsets.span(&range),
            pages: self.page_span(&range),
        }
    }

    /// From the node's heading, or from lower headings directly before its first text, to the end of its last text.
    fn node_range(&self, plan: &Plan) -> Range<usize> {
        let units = self.outline.units.get(plan.units.clone()).unwrap_or_default();
        let (first, last) = (units.first().map_or(0, |unit| unit.range.start), units.last());
        let before = plan.units.start.checked_sub(1).and_then(|before| self.outline.units.get(before));
        let after = before.map_or(0, |unit| unit.range.end);
        let start = match plan.heading.and_then(|at| self.outline.headings.get(at)) {
            Some(heading) => heading.range.start,
            None => self.lower_heading(plan, after).unwrap_or(first),
        };
        start.min(first)..last.map_or(first, |unit| unit.range.end)
    }

    /// The offset of the first heading between `after` and the first unit of the plan that is neither the top heading nor
    /// above the plan.
    fn lower_heading(&self, plan: &Plan, after: usize) -> Option<usize> {
        let headings = &self.outline.headings;
        let level = |at: usize| headings.get(at).map_or(0, |heading| heading.level);
        let above = plan.under.map_or(0, level);
        let from = headings.partition_point(|heading| heading.first_unit < plan.units.start);
        let candidates = headings.iter().enumerate().skip(from);
        candidates
            .take_while(|(_, heading)| heading.first_unit == plan.units.start)
            .find(|(at, heading)| {
                Some(*at) != self.outline.top && heading.level > above && heading.range.start >= after
            })
            .map(|(_, heading)| heading.range.start)
    }

    fn chunk(&self, units: &Range<usize>, ordinal: u32, parent: u32) -> Option<Chunk> {
        let first_unit = units.start;
        let units = self.outline.units.get(units.clone())?;
        let (first, last) = (units.first()?, units.last()?);
        let range = first.range.start..last.range.end;
        Some(Chunk {
            ordinal,
            parent,
            path: self.outline.path(first.heading),
            span: self.offsets.span(&range),
            pages: self.page_span(&range),
            text: self.text.get(range)?.to_owned(),
            table_header: self.outline.table_headers.before(self.text, first_unit).unwrap_or_default(),
        })
    }

    fn page_span(&self, range: &Range<usize>) -> Option<PageSpan> {
        let page_at = |byte: usize| {
            let next = self.pages.partition_point(|(start, _)| *start <= byte);
            self.pages.get(next.saturating_sub(1)).map(|(_, page)| *page)
        };
        let start = page_at(range.start)?;
        Some(PageSpan { start, end: page_at(range.end.saturating_sub(1)).unwrap_or(start).max(start) })
    }
}

/// The start of each page, as far as the blocks have page numbers.
fn pages(parsed: &Parsed) -> Vec<(usize, u32)> {
    let mut pages: Vec<(usize, u32)> = Vec::new();
    for block in &parsed.blocks {
        let Some(page) = block.page else { continue };
        if pages.last().is_none_or(|(start, last)| *last != page && *start <= block.range.start) {
            pages.push((block.range.start, page));
        }
    }
    pages
}

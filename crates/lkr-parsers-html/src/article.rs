use std::collections::HashSet;

use dom_query::{Document, NodeId};
use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};

use crate::{
    blocks::Blocks,
    charset, page,
    picture::refuse_pictures,
    readability, sanitize,
    style_sheet::StyleSheet,
    unit::{TextUnit, UnitKind},
};

/// Titles are compared by this many characters: a page may have many headings to compare.
const MAX_TITLE_CHARS: usize = 1_000;

/// Parses HTML pages. If a page is an article, all text outside of it is furniture; otherwise all text is body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Article;

impl Parser for Article {
    fn name(&self) -> &'static str {
        "article"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let decoded = charset::read(source);
        let sanitized = sanitize::sanitize(&decoded.text, sanitize::MAX_TAGS);
        let mut blocks = Blocks::default();
        decoded.warnings().for_each(|warning| blocks.warn(warning));
        sanitized.warnings().for_each(|warning| blocks.warn(warning));
        let document = Document::from(&*sanitized.html);
        let style_sheet = page::trusted_styles(&document, StyleSheet::from_page(&sanitized.html));
        let page = page::read(&document, &style_sheet);
        let article = if source.is_past_deadline() { None } else { readability::article(&document, &page) };
        drop(document);
        push_text(&page.units, article.as_ref(), &mut blocks)?;
        refuse_pictures(blocks.finish()?, &sanitized.html)
    }
}

fn push_text(units: &[TextUnit], article: Option<&HashSet<NodeId>>, blocks: &mut Blocks) -> Result<()> {
    let title = units.iter().find(|unit| unit.kind == UnitKind::Title);
    let words = title.map(|title| words(&title.text)).unwrap_or_default();
    let is_named = |unit: &TextUnit| unit.kind == UnitKind::Heading(1) && is_title(&words, unit);
    let is_body = |node: NodeId| article.is_none_or(|nodes| nodes.contains(&node));
    let is_top = |unit: &TextUnit| {
        let is_heading = unit.kind == UnitKind::Heading(1);
        is_heading && (unit.spans.iter().any(|span| is_body(span.node)) || is_named(unit))
    };
    if let Some(title) = title.filter(|_| !units.iter().any(is_top)) {
        blocks.push(title, &title.text, false)?;
    }
    for unit in units.iter().filter(|unit| unit.kind != UnitKind::Title) {
        let is_named = is_named(unit);
        for (text, is_body) in runs(unit, |node| is_named || is_body(node)) {
            blocks.push(unit, &text, !is_body)?;
        }
    }
    Ok(())
}

/// Whether a heading repeats the page's title. Readability leaves such headings out of articles.
fn is_title(title: &str, heading: &TextUnit) -> bool {
    let heading = words(&heading.text);
    !heading.is_empty() && title.contains(&heading)
}

/// The start of a title in normal form, for comparison.
fn words(text: &str) -> String {
    let start: String = text.chars().take(MAX_TITLE_CHARS).collect();
    start.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Splits a unit into runs of text and whether each one is body. Blank parts belong to the run before them.
fn runs(unit: &TextUnit, is_body: impl Fn(NodeId) -> bool) -> Vec<(String, bool)> {
    let mut runs: Vec<(String, bool)> = Vec::new();
    for (text, span) in unit.parts() {
        let flag = is_body(span.node);
        let is_blank = text.chars().all(|c| c.is_whitespace() || c == '|');
        match runs.last_mut() {
            Some((run, last)) if *last == flag || is_blank => run.push_str(text),
            _ => runs.push((text.to_owned(), flag)),
        }
    }
    runs
}

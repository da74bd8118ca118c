use std::collections::HashSet;

use dom_query::{Document, NodeId};
use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};

use crate::{
    blocks::Blocks,
    charset, guard, page, readable,
    sheet::Sheet,
    unit::{Shape, Unit},
};

/// Titles are compared by so many characters.
const MAX_TITLE_CHARS: usize = 1_000;

/// Reads HTML pages: the article where a page is one, with all other text as furniture, else all text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Article;

impl Parser for Article {
    fn name(&self) -> &'static str {
        "article"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let decoded = charset::read(source);
        let tamed = guard::tame(&decoded.text, guard::MAX_TAGS);
        let mut blocks = Blocks::default();
        if decoded.lossy {
            blocks.warn(format!("some characters could not be read as {}", decoded.encoding));
        }
        if tamed.is_cut {
            blocks.warn("the page has more tags than can be followed: some were left out, but no words");
        }
        let document = Document::from(&*tamed.html);
        let sheet = page::settle(&document, Sheet::of(&tamed.html));
        let page = page::read(&document, &sheet);
        let article = if source.is_over() { None } else { readable::article(&document, &page) };
        drop(document);
        write(&page.units, article.as_ref(), &mut blocks)?;
        blocks.finish()
    }
}

fn write(units: &[Unit], article: Option<&HashSet<NodeId>>, blocks: &mut Blocks) -> Result<()> {
    let title = units.iter().find(|unit| unit.shape == Shape::Title);
    let words = title.map(|title| words(&title.text)).unwrap_or_default();
    let is_named = |unit: &Unit| unit.shape == Shape::Heading(1) && names(&words, unit);
    let is_body = |node: NodeId| article.is_none_or(|nodes| nodes.contains(&node));
    let is_top = |unit: &Unit| {
        let is_heading = unit.shape == Shape::Heading(1);
        is_heading && (unit.spans.iter().any(|span| is_body(span.node)) || is_named(unit))
    };
    if let Some(title) = title.filter(|_| !units.iter().any(is_top)) {
        blocks.push(title, &title.text, false)?;
    }
    for unit in units.iter().filter(|unit| unit.shape != Shape::Title) {
        let is_named = is_named(unit);
        for (text, is_body) in runs(unit, |node| is_named || is_body(node)) {
            blocks.push(unit, &text, !is_body)?;
        }
    }
    Ok(())
}

/// Whether a heading is the page's title, which searches for articles leave out.
fn names(title: &str, heading: &Unit) -> bool {
    let heading = words(&heading.text);
    !heading.is_empty() && title.contains(&heading)
}

/// The words that titles are told by: no title is longer, and a page may have many headings to compare with it.
fn words(text: &str) -> String {
    let start: String = text.chars().take(MAX_TITLE_CHARS).collect();
    start.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The parts of a unit that are body and those that are not, in their order. Blanks belong to what they follow.
fn runs(unit: &Unit, is_body: impl Fn(NodeId) -> bool) -> Vec<(String, bool)> {
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

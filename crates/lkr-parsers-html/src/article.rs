use std::collections::HashSet;

use dom_query::{Document, NodeId};
use lkr_domain::Parsed;
use lkr_parsers::{Parser, Result, Source};

use crate::{
    blocks::Blocks,
    charset, guard, page, readable,
    unit::{Shape, Unit},
};

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
        let page = page::read(&document);
        let article = if source.is_over() { None } else { readable::article(&document, &page) };
        drop(document);
        write(&page.units, article.as_ref(), &mut blocks)?;
        blocks.finish()
    }
}

fn write(units: &[Unit], article: Option<&HashSet<NodeId>>, blocks: &mut Blocks) -> Result<()> {
    let title = units.iter().find(|unit| unit.shape == Shape::Title);
    let is_body = |unit: &Unit, node| match article {
        None => true,
        Some(_) if unit.shape == Shape::Heading(1) && names(title, unit) => true,
        Some(nodes) => nodes.contains(&node),
    };
    let is_top = |unit: &&Unit| {
        unit.shape == Shape::Heading(1) && unit.spans.iter().any(|span| is_body(unit, span.node))
    };
    if let Some(title) = title.filter(|_| !units.iter().any(|unit| is_top(&unit))) {
        blocks.push(title, &title.text, false)?;
    }
    for unit in units.iter().filter(|unit| unit.shape != Shape::Title) {
        for (text, is_body) in runs(unit, |node| is_body(unit, node)) {
            blocks.push(unit, &text, !is_body)?;
        }
    }
    Ok(())
}

/// Whether a heading is the page's title, which searches for articles leave out.
fn names(title: Option<&Unit>, heading: &Unit) -> bool {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    let heading = words(&heading.text);
    !heading.is_empty() && title.is_some_and(|title| words(&title.text).contains(&heading))
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

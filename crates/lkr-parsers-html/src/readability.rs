//! Finds the article of a page.

use std::collections::HashSet;

use dom_query::{Document, NodeId, NodeRef};
use dom_smoothie::{Config, Readability};

use crate::{
    page::Page,
    unit::{Span, TextUnit, UnitKind},
};

/// Pages with more nodes are not searched: the search copies the page.
const MAX_NODES: usize = 250_000;

/// Pages with longer titles are not searched: the search compares each heading with the title.
const MAX_TITLE_BYTES: usize = 2_000;

/// Shorter units do not count as readable text.
const MIN_UNIT_CHARS: usize = 80;

/// The text nodes of the article, if the page is one.
pub(crate) fn article(document: &Document, page: &Page) -> Option<HashSet<NodeId>> {
    if document.tree.len() > MAX_NODES || has_long_title(document) {
        return None;
    }
    let config = Config { disable_json_ld: true, max_elements_to_parse: MAX_NODES, ..Config::default() };
    let mut search = Readability::with_document(document.clone(), None, Some(config)).ok()?;
    if !search.is_probably_readable() {
        return None;
    }
    search.parse().ok()?;
    let found = search.doc.select_single("#readability-page-1");
    // The search moves text nodes but keeps their ids.
    let nodes: HashSet<NodeId> = found
        .nodes()
        .iter()
        .flat_map(|root| root.descendants_it())
        .filter(|node| node.is_text())
        .map(|node| node.id)
        .collect();
    covers_most_text(&nodes, page).then_some(nodes)
}

/// Whether an element that the search may take for the title is too long to compare.
fn has_long_title(document: &Document) -> bool {
    let is_long = |node: &NodeRef<'_>| match node.attr("content") {
        Some(content) => content.len() > MAX_TITLE_BYTES,
        None => node.text().len() > MAX_TITLE_BYTES,
    };
    document.select("title, h1, meta").nodes().iter().any(is_long)
}

/// Whether an article has at least half of the readable text: long units that are not mainly links and not in
/// boilerplate elements.
fn covers_most_text(nodes: &HashSet<NodeId>, page: &Page) -> bool {
    let containers = containers(nodes, page);
    let (mut inside, mut all) = (0_usize, 0_usize);
    for unit in page.units.iter().filter(|unit| unit.kind != UnitKind::Title) {
        let (length, linked) = (length(unit, |_| true), length(unit, |span| span.is_linked));
        if length < MIN_UNIT_CHARS || linked * 2 > length {
            continue;
        }
        let read = length_in(unit, nodes);
        inside += read;
        // If the innermost boilerplate element contains some of the article, so do those around it.
        let is_boilerplate = unit.boilerplate.is_some_and(|element| !containers.contains(&element));
        all += if is_boilerplate { read } else { length };
    }
    inside * 2 >= all
}

/// The boilerplate elements that contain text of the article.
fn containers(nodes: &HashSet<NodeId>, page: &Page) -> HashSet<usize> {
    let article_units =
        page.units.iter().filter(|unit| unit.spans.iter().any(|span| nodes.contains(&span.node)));
    let mut found = HashSet::new();
    for unit in article_units {
        // The ancestors of a known element are known too.
        let new: Vec<usize> = ancestors(page, unit).take_while(|element| !found.contains(element)).collect();
        found.extend(new);
    }
    found
}

/// The boilerplate elements around a unit.
fn ancestors(page: &Page, unit: &TextUnit) -> impl Iterator<Item = usize> {
    let outer = |element: &usize| page.boilerplate.get(*element).copied().flatten();
    std::iter::successors(unit.boilerplate, outer)
}

fn length_in(unit: &TextUnit, nodes: &HashSet<NodeId>) -> usize {
    length(unit, |span| nodes.contains(&span.node))
}

/// How many characters of a unit are in the counted spans.
fn length(unit: &TextUnit, is_counted: impl Fn(&Span) -> bool) -> usize {
    unit.parts().filter(|(_, span)| is_counted(span)).map(|(text, _)| text.chars().count()).sum()
}

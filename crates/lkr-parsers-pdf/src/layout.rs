//! Turns pages of lines into text and blocks, independently of the engine.

mod blocks;
mod evidence;
mod front_pages;
mod furniture;
mod heading_words;
mod numbering;
mod rows;
mod sizes;
mod tables;
mod titles;
mod words;

use std::ops::Range;

use lkr_domain::Parsed;
use lkr_parsers::{Composer, Result};

use crate::{
    outline::Entry,
    page::{Line, Page},
};

/// A heading on its page.
#[derive(Debug, Clone, PartialEq)]
struct Heading {
    level: u8,
    title: String,
    /// Its lines; empty if the page does not show it, which then comes before that line.
    lines: Range<usize>,
    /// The end of the heading in its last line, if other text follows there.
    end: Option<usize>,
    /// Its replacement in the text, if the page does not show it.
    replacement: Option<String>,
}

/// A page with its furniture and headings.
struct LayoutPage {
    lines: Vec<Line>,
    furniture: Vec<bool>,
    headings: Vec<Heading>,
}

/// Composes the text and the blocks of a document.
pub(crate) fn compose(pages: Vec<Page>, outline: &[Entry], warnings: Vec<String>) -> Result<Parsed> {
    let pages: Vec<Page> =
        pages.into_iter().map(|page| Page { lines: rows::join(page.lines), ..page }).collect();
    let furniture = furniture::find(&pages);
    let mut page_layouts: Vec<LayoutPage> = pages
        .into_iter()
        .zip(furniture)
        .map(|(page, furniture)| LayoutPage { lines: page.lines, furniture, headings: vec![] })
        .collect();
    if outline.is_empty() {
        sizes::find(&mut page_layouts);
    } else {
        titles::find(&mut page_layouts, outline);
    }
    let mut composer = Composer::new();
    for (number, page_layout) in (1..).zip(&page_layouts) {
        blocks::push(&mut composer, page_layout, number)?;
    }
    warnings.into_iter().for_each(|warning| composer.warn(warning));
    composer.finish()
}

#[cfg(test)]
mod tests;

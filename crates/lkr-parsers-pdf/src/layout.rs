//! From pages of lines to text and blocks. Nothing here knows which engine the lines come from.

mod blocks;
mod furniture;
mod looks;
mod sizes;
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
    /// The lines it is made of; none where the page does not show it, which then begins there.
    lines: Range<usize>,
    /// Where in the last of its lines it ends, if that goes on with other text.
    end: Option<usize>,
    /// What stands in the text where the page does not show it.
    instead: Option<String>,
}

/// A page with what its lines are.
struct Sheet {
    lines: Vec<Line>,
    furniture: Vec<bool>,
    headings: Vec<Heading>,
}

/// The text and the blocks of a document.
pub(crate) fn compose(pages: Vec<Page>, outline: &[Entry], warnings: Vec<String>) -> Result<Parsed> {
    let furniture = furniture::find(&pages);
    let mut sheets: Vec<Sheet> = pages
        .into_iter()
        .zip(furniture)
        .map(|(page, furniture)| Sheet { lines: page.lines, furniture, headings: vec![] })
        .collect();
    if outline.is_empty() {
        sizes::find(&mut sheets);
    } else {
        titles::find(&mut sheets, outline);
    }
    let mut composer = Composer::new();
    for (number, sheet) in (1..).zip(&sheets) {
        blocks::push(&mut composer, sheet, number)?;
    }
    warnings.into_iter().for_each(|warning| composer.warn(warning));
    composer.finish()
}

#[cfg(test)]
mod tests;

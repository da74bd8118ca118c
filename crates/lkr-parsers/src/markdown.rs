mod html;
mod line;
mod list;
mod mark;
mod scan;
mod title;

use lkr_domain::Parsed;

pub(crate) use line::lines;

use crate::{Parser, Result, Source, compose::too_many_headings, text};

/// Reads Markdown in any encoding, keeps it as it is, and finds what it is made of. See the crate's documentation for what
/// counts as a heading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

impl Parser for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let (text, mut warnings) = text::read(source)?;
        let (blocks, cut) = scan::blocks(&text);
        warnings.extend(cut.then(too_many_headings));
        Ok(Parsed { text, blocks, warnings })
    }
}

#[cfg(test)]
mod tests;

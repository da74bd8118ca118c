mod html;
mod line;
mod list;
mod mark;
mod scan;
mod title;

use lkr_domain::Parsed;

pub(crate) use line::lines;

use crate::{Parser, Result, Source, compose::too_many_headings, text};

/// Parses Markdown in any encoding. The text stays unchanged. The crate's documentation defines what counts as a heading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

impl Parser for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let (text, mut warnings) = text::read(source)?;
        let (blocks, is_truncated) = scan::blocks(&text);
        warnings.extend(is_truncated.then(too_many_headings));
        Ok(Parsed { text, blocks, warnings })
    }
}

#[cfg(test)]
mod tests;

mod html;
mod line;
mod list;
mod mark;
mod scan;
mod title;

use lkr_domain::Parsed;

pub(crate) use line::lines;

use crate::{Parser, Result, Source};

/// Reads UTF-8 Markdown, keeps it as it is, and finds what it is made of. See the crate's documentation for what
/// counts as a heading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

impl Parser for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn parse(&self, source: &Source<'_>) -> Result<Parsed> {
        let text = std::str::from_utf8(source.bytes)?.to_owned();
        let (blocks, cut) = scan::blocks(&text);
        let warning = || format!("more than {} headings: the rest is read as text", scan::MAX_HEADINGS);
        Ok(Parsed { text, blocks, warnings: cut.then(warning).into_iter().collect() })
    }
}

#[cfg(test)]
mod tests;

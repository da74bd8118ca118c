//! The text of a context and its passages.

use lkr_domain::CharSpan;
use lkr_text::prompt_tokens;

use crate::context::{
    material::{Material, Piece},
    passages::{Run, RunTexts, runs},
    response::ContextPassage,
};

/// A text for a prompt.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    pub(super) text: String,
    pub(super) tokens: usize,
    pub(super) passages: Vec<ContextPassage>,
}

/// The line with the title of a document.
pub(super) fn title_line(title: &str) -> String {
    if title.is_empty() { String::new() } else { format!("# {title}\n\n") }
}

/// The line with the marker of a passage and the headings above it.
pub(super) fn passage_head(number: usize, path: &[String]) -> String {
    let space = if path.is_empty() { "" } else { " " };
    format!("[{number}]{space}{}\n", path.join(" > "))
}

/// Renders the pieces, without the last ones if they do not fit in `max_tokens`. `texts` has the passages of several
/// chunks; without it, no passage has several.
pub(super) fn render(
    material: &Material,
    mut pieces: Vec<Piece>,
    texts: Option<&RunTexts>,
    max_tokens: usize,
) -> Rendered {
    while !pieces.is_empty() {
        let rendered = render_all(material, &pieces, texts);
        if rendered.tokens <= max_tokens {
            return rendered;
        }
        pieces.pop();
    }
    Rendered::default()
}

fn render_all(material: &Material, pieces: &[Piece], texts: Option<&RunTexts>) -> Rendered {
    let mut text = String::new();
    let mut passages = Vec::new();
    for (doc_id, runs) in runs(material, pieces, texts.is_some()) {
        let title = material.documents.get(&doc_id).map_or("", |document| document.title.as_str());
        text.push_str(&title_line(title));
        for run in runs {
            let number = passages.len() + 1;
            let texts = texts.and_then(|texts| texts.get(&doc_id)).map(Vec::as_slice).unwrap_or_default();
            let Some(passage) = passage(material, &run, number, texts) else { continue };
            text.push_str(&passage_head(number, &passage.path));
            text.push_str(&passage.text);
            text.push_str("\n\n");
            passages.push(passage);
        }
    }
    text.truncate(text.trim_end().len());
    Rendered { tokens: prompt_tokens(&text), text, passages }
}

/// A run as a passage. `texts` has the runs of its document before any of their pieces was left out.
fn passage(
    material: &Material,
    run: &Run,
    number: usize,
    texts: &[(CharSpan, String)],
) -> Option<ContextPassage> {
    let (first, last) = (run.pieces.first()?, run.pieces.last()?);
    let (first_chunk, last_chunk) = (material.chunks.get(&first.key)?, material.chunks.get(&last.key)?);
    let document = material.documents.get(&first.key.0)?;
    let span = run.span();
    let (from, text) = match run.pieces.len() {
        1 => (first_chunk.span, &first_chunk.text),
        _ => texts.iter().find(|(read, _)| read.contains(span)).map(|(read, text)| (*read, text))?,
    };
    let start = span.start.checked_sub(from.start)?;
    let cut = cut(text, CharSpan { start, end: start + span.len() })?;
    let ids = run.pieces.iter().map(|piece| material.chunk_id(piece.key));
    Some(ContextPassage {
        marker: format!("[{number}]"),
        chunk_ids: ids.collect(),
        doc_id: document.doc_id,
        title: document.title.clone(),
        source: document.source.clone(),
        path: first_chunk.path.clone(),
        page_start: first_chunk.pages.map(|pages| pages.start),
        page_end: last_chunk.pages.map(|pages| pages.end),
        char_start: span.start,
        char_end: span.end,
        text: cut.to_owned(),
        score: material.candidates.get(run.rank()).map_or(0.0, |found| found.score),
    })
}

/// The part of a text in a range of code points.
fn cut(text: &str, span: CharSpan) -> Option<&str> {
    let at =
        |text: &str, chars: u32| text.char_indices().nth(chars as usize).map_or(text.len(), |(at, _)| at);
    let start = at(text, span.start);
    let tail = text.get(start..)?;
    tail.get(..at(tail, span.len()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use lkr_domain::{Chunk, DocId};

    use super::*;
    use crate::{assemble::QueryMarks, live::Documents};

    pub(in crate::context) fn doc(n: u8) -> DocId {
        DocId::from_bytes([n; 16])
    }

    pub(in crate::context) fn chunk(ordinal: u32, path: &[&str], text: &str) -> Chunk {
        let path = path.iter().map(|heading| (*heading).to_owned()).collect();
        let start = ordinal * 1_000;
        let span = CharSpan { start, end: start + u32::try_from(text.chars().count()).unwrap() };
        Chunk {
            ordinal,
            parent: 0,
            path,
            span,
            pages: None,
            table_header: String::new(),
            text: text.to_owned(),
        }
    }

    /// These chunks of documents without records.
    pub(in crate::context) fn material(chunks: impl IntoIterator<Item = (DocId, Chunk)>) -> Material {
        Material {
            candidates: Vec::new(),
            chunks: chunks.into_iter().map(|(doc_id, chunk)| ((doc_id, chunk.ordinal), chunk)).collect(),
            documents: Documents::default(),
            marks: QueryMarks { terms: Arc::from([]), literals: Arc::default() },
        }
    }

    #[test]
    fn cut_counts_code_points() {
        let span = |start, end| CharSpan { start, end };
        assert_eq!(cut("aé東z", span(1, 3)), Some("é東"));
        assert_eq!(cut("aé", span(2, 2)), Some(""));
        assert_eq!((cut("aé", span(0, 9)), cut("", span(4, 5))), (Some("aé"), Some("")));
    }

    #[test]
    fn head_has_marker_and_headings() {
        assert_eq!(passage_head(3, &["A".to_owned(), "B".to_owned()]), "[3] A > B\n");
        assert_eq!(
            (passage_head(1, &[]), title_line(""), title_line("T")),
            ("[1]\n".to_owned(), String::new(), "# T\n\n".to_owned())
        );
    }
}

//! Passages and citations for people.

use std::collections::HashSet;

use anyhow::Result;
use serde_json::Value;

use crate::terminal::{Output, clean, field, wrap};

/// The most characters of a passage that are shown.
const MAX_SHOWN: usize = 600;

/// How far the text of a passage is indented.
const INDENT: &str = "    ";

/// Prints each passage below the title, headings and place that it comes from.
pub(super) fn print(output: &Output, results: &[Value]) -> Result<()> {
    let width = output.width().unwrap_or(usize::MAX);
    for (rank, result) in results.iter().enumerate() {
        let head = format!("{:>2}. {}", rank + 1, output.bold(headings(result)));
        let text = wrap(&highlighted(output, result), width, INDENT);
        let place = wrap(&place(result), width, INDENT);
        output.print(&format!("{head}\n{text}{}\n", output.dim(place)))?;
    }
    Ok(())
}

/// Prints the ids of the documents, each once.
pub(super) fn print_ids(output: &Output, results: &[Value]) -> Result<()> {
    let mut printed = HashSet::new();
    for result in results {
        let id = field(result, "doc_id");
        if printed.insert(id.clone()) {
            output.line(&id)?;
        }
    }
    Ok(())
}

/// Prints what the markers of a summary refer to.
pub(super) fn print_citations(output: &Output, summary: &Value, results: &[Value]) -> Result<()> {
    let citations = summary.get("citations").and_then(Value::as_array);
    if citations.is_none_or(Vec::is_empty) {
        return Ok(());
    }
    output.line("")?;
    for citation in citations.into_iter().flatten() {
        let chunk_id = citation.get("chunk_id");
        let Some(result) = results.iter().find(|result| result.get("chunk_id") == chunk_id) else { continue };
        let marker = field(citation, "marker");
        let line = format!("{marker} {} {}", output.bold(headings(result)), output.dim(place(result)));
        output.line(&line)?;
    }
    Ok(())
}

/// The title and the headings that lead to a passage.
fn headings(result: &Value) -> String {
    let path = result.get("path").and_then(Value::as_array);
    let path = path.into_iter().flatten().filter_map(Value::as_str);
    let title = field(result, "title");
    clean(&std::iter::once(title.as_str()).chain(path).collect::<Vec<_>>().join(" › "))
}

/// Where a passage is: source, pages, characters, document.
fn place(result: &Value) -> String {
    let mut parts = Vec::new();
    let source = field(result, "source");
    if !source.is_empty() {
        parts.push(source);
    }
    match (field(result, "page_start"), field(result, "page_end")) {
        (start, _) if start.is_empty() => {}
        (start, end) if start == end => parts.push(format!("page {start}")),
        (start, end) => parts.push(format!("pages {start} to {end}")),
    }
    let space = field(result, "space");
    if !space.is_empty() && space != "default" {
        parts.push(format!("in {space}"));
    }
    parts.push(field(result, "doc_id"));
    clean(&parts.join(" · "))
}

/// The text of a passage, shortened, with its matches highlighted.
fn highlighted(output: &Output, result: &Value) -> String {
    let text: Vec<char> = field(result, "text").chars().collect();
    let ranges = result.get("highlights").and_then(Value::as_array);
    let ranges = ranges.into_iter().flatten().filter_map(range);
    let (mut shown, mut at) = (String::new(), 0);
    for (start, end) in ranges.filter(|(_, end)| *end <= text.len().min(MAX_SHOWN)) {
        if let (Some(before), Some(matched)) = (text.get(at..start), text.get(start..end)) {
            shown.push_str(&clean_chars(before));
            shown.push_str(&output.highlight(clean_chars(matched)).to_string());
            at = end;
        }
    }
    let rest = text.get(at..text.len().min(MAX_SHOWN)).unwrap_or_default();
    shown.push_str(&clean_chars(rest));
    if text.len() > MAX_SHOWN {
        shown.push('…');
    }
    shown
}

fn range(value: &Value) -> Option<(usize, usize)> {
    let bound = |at: usize| usize::try_from(value.get(at)?.as_u64()?).ok();
    Some((bound(0)?, bound(1)?))
}

fn clean_chars(text: &[char]) -> String {
    clean(&text.iter().collect::<String>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::terminal::OutputArgs;

    #[test]
    fn passage_names_its_place_and_hides_control_characters() {
        let result = json!({
            "doc_id": "d", "title": "T\u{1b}[31m", "path": ["A", "B"], "source": "t.pdf", "page_start": 3,
            "page_end": 4, "space": "sea", "text": "the tide\u{7} rises", "highlights": [[4, 8], [90, 99]]
        });
        assert_eq!(headings(&result), "T [31m › A › B");
        assert_eq!(place(&result), "t.pdf · pages 3 to 4 · in sea · d");
        let text =
            console::strip_ansi_codes(&highlighted(&OutputArgs::default().output(), &result)).into_owned();
        assert_eq!(text, "the tide  rises");
        let long = json!({"text": "x".repeat(MAX_SHOWN + 1)});
        assert!(highlighted(&OutputArgs::default().output(), &long).ends_with('…'));
    }
}

//! Extractive summaries: sentences picked from the results.

use lkr_layers::summarize_passages;

use crate::{
    Citation, SearchResult, Summary, SummaryKind,
    summary::markers::{cite, marker_group},
};

/// The longest summary in code points, without its markers.
const MAX_CHARS: usize = 800;

/// The sentences of the results that answer the query best, each followed by its marker: `One. [1] Other. [2]`.
/// Markers number the cited chunks in the order of their first citation. Without results the text is empty.
pub(super) fn extractive(query: &str, results: &[SearchResult]) -> Summary {
    let passages: Vec<_> = results.iter().map(|result| result.text.as_str()).collect();
    let mut citations: Vec<Citation> = Vec::new();
    let mut parts = Vec::new();
    for sentence in summarize_passages(query, &passages, MAX_CHARS) {
        let Some(result) = results.get(sentence.passage) else { continue };
        parts.push(without_references(&sentence.text));
        parts.push(cite(&mut citations, result));
    }
    Summary { text: parts.join(" "), citations, model: None, kind: SummaryKind::Extractive }
}

/// A sentence without the document's own references such as `[1]` or `【2, 3】`, which would look like markers of the summary,
/// nor what the removal of others makes one.
fn without_references(sentence: &str) -> String {
    let mut text = without_groups(sentence);
    loop {
        let shorter = without_groups(&text);
        if shorter.len() == text.len() {
            return text;
        }
        text = shorter;
    }
}

/// A text without the groups of markers in it. What only their removal makes a group stays.
fn without_groups(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '【']) {
        let (before, from) = rest.split_at_checked(at).unwrap_or((rest, ""));
        kept.push_str(before);
        if let Some((_, beyond)) = marker_group(from) {
            if !beyond.starts_with(char::is_alphanumeric) {
                kept.truncate(kept.trim_end().len());
            }
            rest = beyond;
            continue;
        }
        let mut chars = from.chars();
        kept.extend(chars.next());
        rest = chars.as_str();
    }
    kept.push_str(rest);
    kept.trim_end().to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use lkr_domain::{DocId, PointId};

    use super::*;
    use crate::Scores;

    pub(crate) fn result(n: u8, text: &str) -> SearchResult {
        SearchResult {
            chunk_id: PointId::from_bytes([n; 16]),
            doc_id: DocId::from_bytes([n; 16]),
            revision: 1,
            updated_at: time::OffsetDateTime::UNIX_EPOCH,
            title: String::new(),
            source: String::new(),
            space: lkr_domain::SpaceName::default(),
            category: String::new(),
            path: Vec::new(),
            page_start: None,
            page_end: None,
            char_start: 0,
            char_end: 0,
            text: text.to_owned(),
            highlights: Vec::new(),
            score: 1.0,
            scores: Scores::default(),
        }
    }

    #[test]
    fn extractive_summary_cites_a_result_for_every_sentence() {
        let results = [
            result(7, "Unrelated words stand here. Europa hides an ocean [3] under a crust of ice."),
            result(
                8,
                "The ice of Europa is twenty kilometres thick. Nobody has drilled through the ice yet.",
            ),
        ];
        let summary = extractive("how thick is the ice above the ocean of Europa", &results);
        assert!(summary.text.contains("Europa hides an ocean under a crust of ice. [1]"), "{}", summary.text);
        assert!(
            summary.text.contains("The ice of Europa is twenty kilometres thick. [2]"),
            "{}",
            summary.text
        );
        let cited: Vec<_> = summary.citations.iter().map(|c| (c.marker.as_str(), c.chunk_id)).collect();
        assert_eq!(cited, [("[1]", results[0].chunk_id), ("[2]", results[1].chunk_id)]);
        assert_eq!((summary.model, summary.kind), (None, SummaryKind::Extractive));
    }

    #[test]
    fn extractive_summary_without_results_is_empty() {
        let summary = extractive("anything", &[]);
        assert_eq!((summary.text.as_str(), summary.citations.len()), ("", 0));
    }

    #[test]
    fn without_references_removes_only_what_looks_like_markers() {
        let check = |sentence: &str, expected: &str| assert_eq!(without_references(sentence), expected);
        check("so it is.[12]", "so it is.");
        check("a[i] and a[] and [x] and [1", "a[i] and a[] and [x] and [1");
        check("[[1]]", "[]");
        check("語[3]語", "語語");
        check("in March [1, 2] as", "in March as");
        check("reported 【2】 by", "reported by");
        check("others [[2]2].", "others.");
        check("others [[[2]2]3] and 【a】", "others and 【a】");
    }
}

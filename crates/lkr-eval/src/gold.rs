use std::collections::HashMap;

use lkr_domain::{CharSpan, DocId};
use serde::{Deserialize, Serialize};

use crate::{Measures, distinct, most_overlapping};

/// The most queries of a gold set.
const MAX_QUERIES: usize = 10_000;
/// The longest query in code points, without surrounding white space.
const MAX_QUERY_CHARS: usize = 2_000;
/// The most judgements of a query.
const MAX_RELEVANT: usize = 1_000;

/// Queries with relevance judgements.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldSet {
    /// The queries.
    pub queries: Vec<GoldQuery>,
}

/// A query with relevance judgements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldQuery {
    /// The query.
    pub text: String,
    /// The relevant documents or parts of documents.
    pub relevant: Vec<Relevant>,
}

/// A document, or a part of one, that is relevant to a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relevant {
    /// The document.
    pub doc_id: DocId,
    /// The relevant part; `None` for the whole document.
    pub span: Option<CharSpan>,
}

/// A chunk in a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundChunk {
    /// Its document.
    pub doc_id: DocId,
    /// Its range in the document.
    pub span: CharSpan,
}

/// An item of a ranking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum RankedItem {
    /// A judged document or span.
    Judged(Relevant),
    /// A document without a judgement, if whole documents are judged.
    Document(DocId),
    /// A chunk that overlaps no judged span.
    Chunk(DocId, CharSpan),
}

impl GoldSet {
    /// The first violation of a limit, with the key at fault; `None` if the gold set is valid.
    #[must_use]
    pub fn violation(&self) -> Option<String> {
        let length = self.queries.len();
        if !(1..=MAX_QUERIES).contains(&length) {
            return Some(format!("queries has {length} items, 1 to {MAX_QUERIES} are allowed"));
        }
        let violation =
            |(at, query): (usize, &GoldQuery)| Some(format!("queries[{at}].{}", query.violation()?));
        self.queries.iter().enumerate().find_map(violation)
    }
}

impl GoldQuery {
    fn violation(&self) -> Option<String> {
        let length = self.text.trim().chars().count();
        if !(1..=MAX_QUERY_CHARS).contains(&length) {
            return Some(format!("text has {length} characters, 1 to {MAX_QUERY_CHARS} are allowed"));
        }
        let judged = self.relevant.len();
        if !(1..=MAX_RELEVANT).contains(&judged) {
            return Some(format!("relevant has {judged} items, 1 to {MAX_RELEVANT} are allowed"));
        }
        let spans = self.relevant.iter().enumerate().filter_map(|(at, relevant)| Some((at, relevant.span?)));
        let empty = spans.into_iter().find(|(_, span)| span.is_empty());
        empty.map(|(at, CharSpan { start, end })| {
            format!("relevant[{at}]: char_end {end} is not beyond char_start {start}")
        })
    }

    /// Whether only whole documents are judged, so that a ranking of documents is evaluated.
    #[must_use]
    pub fn judges_documents(&self) -> bool {
        self.relevant.iter().all(|relevant| relevant.span.is_none())
    }

    /// The measures of a ranking of chunks. A chunk counts as the judged span that it overlaps most. A chunk that
    /// overlaps none counts as its document if whole documents are judged, else as itself.
    #[must_use]
    pub fn measures(&self, ranking: &[FoundChunk]) -> Measures {
        let by_document = self.judges_documents();
        let items = distinct(ranking.iter().map(|chunk| self.item(*chunk, by_document)));
        let gains: HashMap<RankedItem, f64> =
            self.relevant.iter().map(|relevant| (RankedItem::Judged(*relevant), 1.0)).collect();
        Measures::of(&items, &gains)
    }

    fn item(&self, chunk: FoundChunk, by_document: bool) -> RankedItem {
        let of_document = self.relevant.iter().filter(|relevant| relevant.doc_id == chunk.doc_id);
        let spans: Vec<_> =
            of_document.clone().filter_map(|&relevant| Some((relevant.span?, relevant))).collect();
        let whole_document = || of_document.clone().find(|relevant| relevant.span.is_none());
        match most_overlapping(chunk.span, &spans).or_else(whole_document) {
            Some(relevant) => RankedItem::Judged(*relevant),
            None if by_document => RankedItem::Document(chunk.doc_id),
            None => RankedItem::Chunk(chunk.doc_id, chunk.span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: DocId = DocId::from_bytes([1; 16]);
    const B: DocId = DocId::from_bytes([2; 16]);

    fn chunk(doc_id: DocId, start: u32, end: u32) -> FoundChunk {
        FoundChunk { doc_id, span: CharSpan { start, end } }
    }

    fn relevant(doc_id: DocId, span: Option<(u32, u32)>) -> Relevant {
        Relevant { doc_id, span: span.map(|(start, end)| CharSpan { start, end }) }
    }

    fn query(relevant: Vec<Relevant>) -> GoldQuery {
        GoldQuery { text: "what".to_owned(), relevant }
    }

    #[test]
    fn measures_count_each_document_once() {
        let measures =
            query(vec![relevant(B, None)]).measures(&[chunk(A, 0, 9), chunk(A, 9, 18), chunk(B, 0, 9)]);
        assert_eq!((measures.mrr_at_10, measures.recall_at_10), (0.5, 1.0));
    }

    #[test]
    fn measures_assign_chunks_to_the_spans_that_they_overlap() {
        let query = query(vec![relevant(A, Some((10, 20))), relevant(A, Some((50, 60))), relevant(B, None)]);
        assert!(!query.judges_documents());
        // The first two chunks overlap no span. The next two overlap the same one, which takes one rank.
        let ranking = [chunk(A, 0, 5), chunk(A, 5, 10), chunk(A, 10, 15), chunk(A, 15, 30), chunk(B, 3, 4)];
        let measures = query.measures(&ranking);
        assert!((measures.mrr_at_10 - 1.0 / 3.0).abs() < 1e-12);
        assert!((measures.recall_at_10 - 2.0 / 3.0).abs() < 1e-12);
        let expected = (0.5 + 1.0 / 5.0_f64.log2()) / (1.0 + 1.0 / 3.0_f64.log2() + 0.5);
        assert!((measures.ndcg_at_10 - expected).abs() < 1e-12);
    }

    #[test]
    fn violation_names_the_key_at_fault() {
        let good = query(vec![relevant(A, Some((0, 1)))]);
        let violation = |second: GoldQuery| GoldSet { queries: vec![good.clone(), second] }.violation();
        assert_eq!(violation(good.clone()), None);
        for (invalid, expected) in [
            (GoldQuery { text: " \n".to_owned(), ..good.clone() }, "queries[1].text has 0 characters"),
            (GoldQuery { text: "x".repeat(2_001), ..good.clone() }, "queries[1].text has 2001"),
            (query(Vec::new()), "queries[1].relevant has 0 items"),
            (query(vec![relevant(A, None); 1_001]), "queries[1].relevant has 1001 items"),
            (query(vec![relevant(A, None), relevant(A, Some((4, 4)))]), "queries[1].relevant[1]: char_end 4"),
        ] {
            let message = violation(invalid).unwrap();
            assert!(message.starts_with(expected), "{message}");
        }
        assert!(GoldSet::default().violation().unwrap().contains("queries has 0 items"));
        assert!(GoldSet { queries: vec![good; 10_001] }.violation().unwrap().contains("10001 items"));
    }
}

use std::collections::HashMap;

use lkr_domain::{CharSpan, DocId};
use serde::{Deserialize, Serialize};

use crate::{Measures, distinct, stands_for};

/// How many queries a gold set may have.
const MAX_QUERIES: usize = 10_000;
/// How long a query may be, in code points, white space around it not counted.
const MAX_QUERY_CHARS: usize = 2_000;
/// How many judgements a query may have.
const MAX_RELEVANT: usize = 1_000;

/// Queries, and what answers them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldSet {
    /// The queries.
    pub queries: Vec<GoldQuery>,
}

/// A query, and what answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoldQuery {
    /// The query.
    pub text: String,
    /// What answers it.
    pub relevant: Vec<Relevant>,
}

/// What answers a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Relevant {
    /// The document.
    pub doc_id: DocId,
    /// The part of it; all of it where none is named.
    pub span: Option<CharSpan>,
}

/// A chunk that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundChunk {
    /// Its document.
    pub doc_id: DocId,
    /// Where it lies in it.
    pub span: CharSpan,
}

/// What takes a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Item {
    Judged(Relevant),
    /// A document that was not judged, where whole documents are.
    Document(DocId),
    /// A chunk that overlaps nothing that was judged.
    Chunk(DocId, CharSpan),
}

impl GoldSet {
    /// What is wrong with it, and where; `None` where nothing is.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let length = self.queries.len();
        if !(1..=MAX_QUERIES).contains(&length) {
            return Some(format!("queries has {length} items, 1 to {MAX_QUERIES} are allowed"));
        }
        let fault = |(at, query): (usize, &GoldQuery)| Some(format!("queries[{at}].{}", query.fault()?));
        self.queries.iter().enumerate().find_map(fault)
    }
}

impl GoldQuery {
    fn fault(&self) -> Option<String> {
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

    /// Whether whole documents alone are judged, so that a ranking of documents is what is wanted.
    #[must_use]
    pub fn judges_documents(&self) -> bool {
        self.relevant.iter().all(|relevant| relevant.span.is_none())
    }

    /// How good a ranking of chunks is. Where a span of a document is judged, a chunk of it stands for the one that it
    /// overlaps most; elsewhere it stands for its document, where whole documents are judged, or for itself.
    #[must_use]
    pub fn measures(&self, found: &[FoundChunk]) -> Measures {
        let by_document = self.judges_documents();
        let ranking = distinct(found.iter().map(|chunk| self.item(*chunk, by_document)));
        let gains: HashMap<Item, f64> =
            self.relevant.iter().map(|relevant| (Item::Judged(*relevant), 1.0)).collect();
        Measures::of(&ranking, &gains)
    }

    fn item(&self, chunk: FoundChunk, by_document: bool) -> Item {
        let own = self.relevant.iter().filter(|relevant| relevant.doc_id == chunk.doc_id);
        let spans: Vec<_> = own.clone().filter_map(|&relevant| Some((relevant.span?, relevant))).collect();
        let whole = || own.clone().find(|relevant| relevant.span.is_none());
        match stands_for(chunk.span, &spans).or_else(whole) {
            Some(relevant) => Item::Judged(*relevant),
            None if by_document => Item::Document(chunk.doc_id),
            None => Item::Chunk(chunk.doc_id, chunk.span),
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
    fn whole_documents_count_once() {
        let measures =
            query(vec![relevant(B, None)]).measures(&[chunk(A, 0, 9), chunk(A, 9, 18), chunk(B, 0, 9)]);
        assert_eq!((measures.mrr_at_10, measures.recall_at_10), (0.5, 1.0));
    }

    #[test]
    fn spans_are_met_by_the_chunks_that_overlap_them() {
        let query = query(vec![relevant(A, Some((10, 20))), relevant(A, Some((50, 60))), relevant(B, None)]);
        assert!(!query.judges_documents());
        // The first two chunks are of no span; the next two of the same one, which takes one rank.
        let found = [chunk(A, 0, 5), chunk(A, 5, 10), chunk(A, 10, 15), chunk(A, 15, 30), chunk(B, 3, 4)];
        let measures = query.measures(&found);
        assert!((measures.mrr_at_10 - 1.0 / 3.0).abs() < 1e-12);
        assert!((measures.recall_at_10 - 2.0 / 3.0).abs() < 1e-12);
        let expected = (0.5 + 1.0 / 5.0_f64.log2()) / (1.0 + 1.0 / 3.0_f64.log2() + 0.5);
        assert!((measures.ndcg_at_10 - expected).abs() < 1e-12);
    }

    #[test]
    fn faults_are_named_by_their_place() {
        let good = query(vec![relevant(A, Some((0, 1)))]);
        let fault = |bad: GoldQuery| GoldSet { queries: vec![good.clone(), bad] }.fault();
        assert_eq!(fault(good.clone()), None);
        for (bad, named) in [
            (GoldQuery { text: " \n".to_owned(), ..good.clone() }, "queries[1].text has 0 characters"),
            (GoldQuery { text: "x".repeat(2_001), ..good.clone() }, "queries[1].text has 2001"),
            (query(Vec::new()), "queries[1].relevant has 0 items"),
            (query(vec![relevant(A, None); 1_001]), "queries[1].relevant has 1001 items"),
            (query(vec![relevant(A, None), relevant(A, Some((4, 4)))]), "queries[1].relevant[1]: char_end 4"),
        ] {
            let said = fault(bad).unwrap();
            assert!(said.starts_with(named), "{said}");
        }
        assert!(GoldSet::default().fault().unwrap().contains("queries has 0 items"));
        assert!(GoldSet { queries: vec![good; 10_001] }.fault().unwrap().contains("10001 items"));
    }
}

use std::{collections::BTreeMap, ops::RangeInclusive};

use lkr_catalog::{DocumentRecord, metadata_tag, tag};
use lkr_domain::{DocId, Document, FilterExpr, Scope, filter::FilterField};
use lkr_vectors::{Condition, Filter};

use crate::{Error, Result};

/// The length of a query in code points, without surrounding white space.
const QUERY_CHARS: RangeInclusive<usize> = 1..=2_000;
const TOP_K: RangeInclusive<usize> = 1..=100;
const MAX_DOC_IDS: usize = 1_000;
const MAX_METADATA: usize = 64;

/// A search request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SearchRequest {
    /// The query: 1 to 2,000 code points, without surrounding white space.
    pub query: String,
    /// The most results: 1 to 100.
    pub top_k: usize,
    /// Whether the response has a summary of the results.
    pub summarize: bool,
    /// The spaces that are searched. Documents of other spaces affect nothing in the response.
    pub scope: Scope,
    /// Which documents of the scope are searched.
    pub filters: SearchFilters,
    /// Which layers are searched.
    pub mode: Mode,
    /// Whether a result is a chunk or a document.
    pub group_by: GroupBy,
    /// Whether the response explains legs, ranks and scores.
    pub explain: bool,
    /// How the legs are fused.
    pub fusion: Fusion,
    /// Whether a reranker orders the best candidates again; `None` uses the reranker if one is configured. If none is,
    /// a request for it yields a warning.
    pub rerank: Option<bool>,
}

/// Which documents are searched; all without a filter. A document must pass every filter that is set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SearchFilters {
    /// The category's name; empty for documents without a category.
    pub category: Option<String>,
    /// The source, compared as a whole.
    pub source: Option<String>,
    /// The documents, at most 1,000. An empty list matches no document.
    pub doc_ids: Option<Vec<DocId>>,
    /// The ISO 639-1 code of the documents' language.
    pub language: Option<String>,
    /// Metadata keys and their values, at most 64.
    pub metadata: BTreeMap<String, String>,
    /// An expression over the fields of documents, which must match besides the filters above.
    pub filter_expr: Option<FilterExpr>,
}

/// Which layers a search queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// All four layers.
    #[default]
    Layered,
    /// Chunks only.
    Flat,
}

/// The unit of results.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum GroupBy {
    /// A chunk.
    #[default]
    Chunk,
    /// A document, represented by its best chunk.
    Document,
}

/// How the legs of a search are fused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Fusion {
    /// Reciprocal-rank fusion over graded ranks, with leg weights that depend on the query.
    /// See docs/studies.md#graded-fusion.
    #[default]
    Graded,
    /// Reciprocal-rank fusion over plain ranks, k = 60, with equal weights (Cormack, Clarke and Büttcher 2009).
    Rrf,
}

impl Default for SearchRequest {
    fn default() -> Self {
        Self {
            query: String::new(),
            top_k: 10,
            summarize: false,
            scope: Scope::All,
            filters: SearchFilters::default(),
            mode: Mode::default(),
            group_by: GroupBy::default(),
            explain: false,
            fusion: Fusion::default(),
            rerank: None,
        }
    }
}

impl SearchRequest {
    /// A request for `query` with default values otherwise.
    #[must_use]
    pub fn new(query: impl Into<String>) -> Self {
        Self { query: query.into(), ..Self::default() }
    }

    /// Checks all bounds.
    ///
    /// # Errors
    /// `Invalid`, with the first key that is out of bounds.
    pub fn validate(&self) -> Result<()> {
        let length = self.query.trim().chars().count();
        if length == 0 {
            return Err(Error::invalid("query is blank".to_owned()));
        }
        within("query", "characters", length, &QUERY_CHARS)?;
        within("top_k", "results", self.top_k, &TOP_K)?;
        let doc_ids = self.filters.doc_ids.as_ref().map_or(0, Vec::len);
        within("filters.doc_ids", "ids", doc_ids, &(0..=MAX_DOC_IDS))?;
        within("filters.metadata", "keys", self.filters.metadata.len(), &(0..=MAX_METADATA))
    }

    /// Whether a document is in the scope and the filters match it. Points were selected by their tags, which a change of the
    /// document sets before its record.
    pub(crate) fn may_show(&self, record: &DocumentRecord) -> Result<bool> {
        if !self.scope.contains(record.space()) {
            return Ok(false);
        }
        Ok(!self.filters.has_field_filters() || self.filters.match_fields_of(&record.document()?))
    }
}

impl SearchFilters {
    /// Whether a filter is about something else than the id.
    fn has_field_filters(&self) -> bool {
        let Self { category, source, doc_ids: _, language, metadata, filter_expr } = self;
        let texts = [category, source, language].into_iter().any(Option::is_some);
        texts || !metadata.is_empty() || filter_expr.is_some()
    }

    /// Whether all filters but that of the ids match a document.
    fn match_fields_of(&self, document: &Document) -> bool {
        let texts = [
            (&self.category, &document.category),
            (&self.source, &document.source),
            (&self.language, &document.language),
        ];
        let has = |(key, value): (&String, &String)| {
            let field = FilterField::Metadata(key.clone());
            field.value_in(document).into_text().as_ref() == Some(value)
        };
        texts.into_iter().all(|(wanted, value)| wanted.as_ref().is_none_or(|wanted| wanted == value))
            && self.metadata.iter().all(has)
            && self.filter_expr.as_ref().is_none_or(|expr| expr.matches(document))
    }

    /// The filter for the vector store.
    pub(crate) fn to_filter(&self) -> Filter {
        let fields = [("category", &self.category), ("source", &self.source), ("language", &self.language)];
        let fields = fields.into_iter().filter_map(|(key, value)| Some(condition(tag(key, value.as_ref()?))));
        let metadata = self.metadata.iter().map(|(key, value)| condition(metadata_tag(key, value)));
        let docs = self.doc_ids.iter().map(|ids| Condition::Docs(ids.clone()));
        let expr = self.filter_expr.iter().map(Condition::from);
        Filter { must: fields.chain(metadata).chain(docs).chain(expr).collect(), must_not: Vec::new() }
    }
}

fn condition((key, value): (String, String)) -> Condition {
    Condition::Tag { key, any: vec![value] }
}

fn within(key: &str, unit: &str, value: usize, bounds: &RangeInclusive<usize>) -> Result<()> {
    if bounds.contains(&value) {
        return Ok(());
    }
    let (low, high) = (bounds.start(), bounds.end());
    Err(Error::invalid(format!("{key} is out of bounds: {value} {unit}, {low} to {high} are allowed")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn refused(request: &SearchRequest) -> String {
        let error = request.validate().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.to_string()
    }

    #[test]
    fn validate_measures_the_query_in_code_points() {
        assert_eq!(refused(&SearchRequest::new(" \n\u{3000}")), "search request: query is blank");
        assert!(SearchRequest::new(format!(" {}\t", "語".repeat(2_000))).validate().is_ok());
        let message = refused(&SearchRequest::new("語".repeat(2_001)));
        assert!(message.contains("2001 characters, 1 to 2000"), "{message}");
    }

    #[test]
    fn validate_refuses_numbers_and_filters_out_of_bounds() {
        for top_k in [0, 101, usize::MAX] {
            let message = refused(&SearchRequest { top_k, ..SearchRequest::new("q") });
            assert!(message.contains(&format!("top_k is out of bounds: {top_k}")), "{message}");
        }
        for top_k in [1, 100] {
            assert!(SearchRequest { top_k, ..SearchRequest::new("q") }.validate().is_ok());
        }
        let mut request = SearchRequest::new("q");
        request.filters.doc_ids = Some(vec![DocId::from_bytes([1; 16]); 1_001]);
        assert!(refused(&request).contains("filters.doc_ids"));
        request.filters.doc_ids = None;
        request.filters.metadata = (0..65).map(|n| (n.to_string(), String::new())).collect();
        assert!(refused(&request).contains("filters.metadata"));
    }

    #[test]
    fn to_filter_has_one_condition_for_each_filter() {
        let filters = SearchFilters {
            category: Some(String::new()),
            source: Some("s".to_owned()),
            doc_ids: Some(Vec::new()),
            language: Some("en".to_owned()),
            metadata: BTreeMap::from([("k".to_owned(), "v".to_owned())]),
            filter_expr: None,
        };
        let expected = [
            condition(("category".to_owned(), String::new())),
            condition(("source".to_owned(), "s".to_owned())),
            condition(("language".to_owned(), "en".to_owned())),
            condition(("metadata.k".to_owned(), "v".to_owned())),
            Condition::Docs(Vec::new()),
        ];
        assert_eq!(filters.to_filter().must, expected);
        assert_eq!(SearchFilters::default().to_filter(), Filter::all());
    }
}

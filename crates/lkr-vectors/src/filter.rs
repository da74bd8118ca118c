use lkr_domain::{DocId, FilterExpr, PointId, filter::ValueTest};

use crate::{PointOrigin, Tags};

/// Selects the points that meet every condition of `must` and none of `must_not`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Filter {
    /// A matching point meets all of these.
    pub must: Vec<Condition>,
    /// A matching point meets none of these.
    pub must_not: Vec<Condition>,
}

/// A condition on a point.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Condition {
    /// The point's id is one of these.
    Ids(Vec<PointId>),
    /// The point's document is one of these.
    Docs(Vec<DocId>),
    /// The point belongs to this revision of this document.
    Revision(DocId, u64),
    /// The point's tag `key` has one of these values.
    Tag {
        /// The tag's key.
        key: String,
        /// The accepted values.
        any: Vec<String>,
    },
    /// The value of the point's tag `key` passes a test. A missing or empty value passes `Exists(false)` alone.
    Value {
        /// The tag's key.
        key: String,
        /// The test.
        test: ValueTest,
    },
    /// The point matches at least one of these filters.
    Any(Vec<Filter>),
}

impl Filter {
    /// The filter that every point matches.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// The filter with a single required condition.
    #[must_use]
    pub fn only(condition: Condition) -> Self {
        Self { must: vec![condition], must_not: Vec::new() }
    }

    /// Adds a required condition.
    #[must_use]
    pub fn and(mut self, condition: Condition) -> Self {
        self.must.push(condition);
        self
    }

    /// Adds an excluded condition.
    #[must_use]
    pub fn and_not(mut self, condition: Condition) -> Self {
        self.must_not.push(condition);
        self
    }

    /// Whether a point matches.
    #[must_use]
    pub fn matches(&self, id: PointId, origin: &PointOrigin, tags: &Tags) -> bool {
        self.must.iter().all(|c| c.matches(id, origin, tags))
            && !self.must_not.iter().any(|c| c.matches(id, origin, tags))
    }
}

impl Condition {
    /// Whether a point meets the condition.
    #[must_use]
    pub fn matches(&self, id: PointId, origin: &PointOrigin, tags: &Tags) -> bool {
        match self {
            Self::Ids(ids) => ids.contains(&id),
            Self::Docs(docs) => docs.contains(&origin.doc_id),
            Self::Revision(doc, revision) => origin.doc_id == *doc && origin.revision == *revision,
            Self::Tag { key, any } => tags.get(key).is_some_and(|value| any.contains(value)),
            Self::Value { key, test } => test.passes(tags.get(key).map(String::as_str)),
            Self::Any(filters) => filters.iter().any(|filter| filter.matches(id, origin, tags)),
        }
    }
}

/// The filter for points whose tags are the fields of their documents, by the names of the fields.
impl From<&FilterExpr> for Filter {
    fn from(expr: &FilterExpr) -> Self {
        match expr {
            FilterExpr::And(all) => {
                Self { must: all.iter().map(Condition::from).collect(), must_not: Vec::new() }
            }
            FilterExpr::Not(expr) => Self::all().and_not(Condition::from(&**expr)),
            FilterExpr::Or(_) | FilterExpr::Field(..) => Self::only(Condition::from(expr)),
        }
    }
}

impl From<&FilterExpr> for Condition {
    fn from(expr: &FilterExpr) -> Self {
        match expr {
            FilterExpr::And(_) | FilterExpr::Not(_) => Self::Any(vec![Filter::from(expr)]),
            FilterExpr::Or(any) => Self::Any(any.iter().map(Filter::from).collect()),
            FilterExpr::Field(field, test) => {
                Self::Value { key: field.name().into_owned(), test: test.clone() }
            }
        }
    }
}

//! The schema of filter expressions. They are parsed by `FilterExprJson`.

use serde::Deserialize;
use utoipa::ToSchema;

/// An expression over the fields of documents: at most 64 expressions, nested at most 8 deep.
///
/// A number is compared by value, a date or time of RFC 3339 by instant, any other string by code points. A missing or
/// empty field passes `exists: false` and nothing else. `created_at` and `updated_at` are compared with dates and times
/// alone, and have no prefix.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum FilterExprInput {
    And(FilterAnd),
    Or(FilterOr),
    Not(FilterNot),
    Equals(FilterEquals),
    In(FilterIn),
    Range(FilterRange),
    Prefix(FilterPrefix),
    Exists(FilterExists),
}

/// Expressions that all match.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterAnd {
    /// The expressions.
    #[schema(no_recursion, min_items = 1, max_items = 63)]
    and: Vec<FilterExprInput>,
}

/// Expressions of which one matches.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterOr {
    /// The expressions.
    #[schema(no_recursion, min_items = 1, max_items = 63)]
    or: Vec<FilterExprInput>,
}

/// An expression that does not match.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterNot {
    /// The expression.
    #[schema(no_recursion)]
    not: Box<FilterExprInput>,
}

/// A field with this value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterEquals {
    /// The field.
    field: FilterFieldName,
    /// The value.
    eq: FilterValue,
}

/// A field with one of several values.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterIn {
    /// The field.
    field: FilterFieldName,
    /// The values.
    #[schema(min_items = 1, max_items = 1000)]
    r#in: Vec<FilterValue>,
}

/// A field with a value within a bound, or between a lower and an upper bound of one type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(min_properties = 2, max_properties = 3)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterRange {
    /// The field.
    field: FilterFieldName,
    /// Above this value.
    #[schema(nullable = false)]
    gt: Option<FilterValue>,
    /// At least this value.
    #[schema(nullable = false)]
    gte: Option<FilterValue>,
    /// Below this value.
    #[schema(nullable = false)]
    lt: Option<FilterValue>,
    /// At most this value.
    #[schema(nullable = false)]
    lte: Option<FilterValue>,
}

/// A field with a value that begins so.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterPrefix {
    /// The field.
    field: FilterFieldName,
    /// The beginning of the value.
    prefix: String,
}

/// A field with a value, or without one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterExists {
    /// The field.
    field: FilterFieldName,
    /// Whether there is a value that is not empty.
    exists: bool,
}

/// A field of documents, or `metadata.` followed by the key.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(
    pattern = "^(doc_id|source|title|category|language|space|created_by|created_at|updated_at|content_type|metadata\\..+)$"
)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct FilterFieldName(String);

/// A string or a number.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum FilterValue {
    Text(String),
    Number(f64),
}

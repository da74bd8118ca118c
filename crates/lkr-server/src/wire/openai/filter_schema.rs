//! The schema of filters of the OpenAI API. They are parsed by [`filter_expr`](super::filter::filter_expr).

use serde::Deserialize;
use utoipa::ToSchema;

use crate::wire::filter_expr_schema::FilterValue;

/// A comparison of an attribute with a value, or several filters together. At most 64 filters, nested at most 8 deep; ne and
/// nin count twice.
///
/// A number is compared by value, a date or time of RFC 3339 by instant, any other string by code points. A document without
/// the attribute passes ne and nin and no other comparison.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum AttributeFilter {
    Equality(AttributeEquality),
    Order(AttributeOrder),
    Membership(AttributeMembership),
    Combination(AttributeCombination),
}

/// An attribute with this value, or another one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct AttributeEquality {
    /// The operator.
    r#type: EqualityOperator,
    /// The attribute.
    key: AttributeKey,
    /// The value.
    value: AttributeValue,
}

/// An attribute above or below a value.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct AttributeOrder {
    /// The operator.
    r#type: OrderOperator,
    /// The attribute.
    key: AttributeKey,
    /// The value.
    value: FilterValue,
}

/// An attribute with one of several values, or with none of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct AttributeMembership {
    /// The operator.
    r#type: MembershipOperator,
    /// The attribute.
    key: AttributeKey,
    /// The values.
    #[schema(min_items = 1, max_items = 1000)]
    value: Vec<AttributeValue>,
}

/// Filters that all match, or of which one matches.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct AttributeCombination {
    /// The operator.
    r#type: CombinationOperator,
    /// The filters.
    #[schema(no_recursion, min_items = 1, max_items = 63)]
    filters: Vec<AttributeFilter>,
}

/// A key of the metadata, or `lkr.` followed by the name of another field: `lkr.source`, `lkr.category`, `lkr.created_at`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(pattern = "^.+$")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct AttributeKey(String);

/// A string, a number, true or false.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum AttributeValue {
    Text(String),
    Number(f64),
    Truth(bool),
}

/// Whether the values are equal.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum EqualityOperator {
    /// They are.
    Eq,
    /// They are not.
    Ne,
}

/// How the attribute is ordered against the value.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum OrderOperator {
    /// Above it.
    Gt,
    /// At least it.
    Gte,
    /// Below it.
    Lt,
    /// At most it.
    Lte,
}

/// Whether the attribute is among the values.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum MembershipOperator {
    /// It is.
    In,
    /// It is not.
    Nin,
}

/// How filters stand together.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum CombinationOperator {
    /// All match.
    And,
    /// One matches.
    Or,
}

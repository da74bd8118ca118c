//! The schema of conditions on metadata, as Dify sends them. `ConditionInput` parses them.

use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::wire::filter_expr_schema::FilterValue;

/// A condition on one key. There is no index for `contains`, `not contains` and `end with`, which are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum MetadataCondition {
    Text(TextCondition),
    Prefix(PrefixCondition),
    List(ListCondition),
    Presence(PresenceCondition),
    Number(NumberCondition),
    Time(TimeCondition),
}

/// A key of the metadata, or `lkr.` followed by the name of another field: `lkr.source`, `lkr.category`, `lkr.created_at`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(pattern = "^.+$")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ConditionName(String);

/// A value that is another one or not.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct TextCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: TextOperator,
    /// A string, or a number.
    value: FilterValue,
}

/// A value that begins so.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct PrefixCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: PrefixOperator,
    /// The beginning.
    value: String,
}

/// A value that is one of several or not.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ListCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: ListOperator,
    /// A list, or its items with commas between them.
    value: ListValue,
}

/// A key with a value, or without one.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct PresenceCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: PresenceOperator,
    /// It has no effect.
    value: Option<Value>,
}

/// A value that is a number, above or below another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct NumberCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: NumberOperator,
    /// A number, or a string that is one.
    value: FilterValue,
}

/// A value that is a time before or after another.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct TimeCondition {
    /// The key.
    name: ConditionName,
    /// The operator.
    comparison_operator: TimeOperator,
    /// A date or time of RFC 3339, or Unix seconds.
    value: FilterValue,
}

/// A list, or a string with commas.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) enum ListValue {
    List(ConditionValues),
    Text(CommaSeparated),
}

/// Strings or numbers.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(min_items = 1, max_items = 1000)]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct ConditionValues(Vec<FilterValue>);

/// Strings with commas between them.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(pattern = "[^, ]")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct CommaSeparated(String);

/// Declares an enum of operators, each with its name.
macro_rules! operators {
    ($(#[$doc:meta])* $name:ident: $($text:literal = $variant:ident),+) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize, ToSchema)]
        pub(crate) enum $name { $(#[schema(rename = $text)] $variant),+ }
    };
}

operators! {
    /// How conditions stand together.
    LogicalOperator: "and" = And, "or" = Or
}
operators! {
    /// How a text is compared.
    TextOperator: "is" = Is, "is not" = IsNot
}
operators! {
    /// How the beginning of a text is compared.
    PrefixOperator: "start with" = StartWith
}
operators! {
    /// Whether the value is on the list.
    ListOperator: "in" = In, "not in" = NotIn
}
operators! {
    /// Whether there is a value.
    PresenceOperator: "empty" = Empty, "not empty" = NotEmpty, "null" = Null, "not null" = NotNull
}
operators! {
    /// How numbers are compared.
    NumberOperator: "=" = Equal, "≠" = NotEqual, ">" = Above, "<" = Below, "≥" = AtLeast, "≤" = AtMost
}
operators! {
    /// How times are compared.
    TimeOperator: "before" = Before, "after" = After
}

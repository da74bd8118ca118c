//! Conditions on metadata, as Dify sends them, as filter expressions.

use lkr::{FilterExpr, filter::Instant};
use serde::Deserialize;
use serde_json::{Number, Value};
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::condition_schema::{LogicalOperator, MetadataCondition};
use crate::{
    error::ApiError,
    wire::{
        filter_expr::{attribute_field, comparison, within_limits},
        timestamp::timestamp,
    },
};

/// The name of the conditions in requests, which begins the places in errors.
const NAME: &str = "metadata_condition";

/// The operators that have no expression.
const UNSUPPORTED: [&str; 3] = ["contains", "not contains", "end with"];

/// Conditions on the metadata of documents.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetadataConditionInput {
    /// Whether all conditions match, the default, or one of them.
    #[schema(value_type = Option<LogicalOperator>)]
    logical_operator: Option<String>,
    /// At most 63 conditions; negative ones count twice.
    #[schema(value_type = Option<Vec<MetadataCondition>>, max_items = 63)]
    conditions: Option<Vec<ConditionInput>>,
}

/// A condition on one key, described by [`MetadataCondition`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConditionInput {
    name: String,
    comparison_operator: String,
    value: Option<Value>,
}

impl MetadataConditionInput {
    /// The expression; `None` without conditions.
    ///
    /// # Errors
    /// `Invalid`, with the place that is wrong.
    pub(crate) fn check(self) -> Result<Option<FilterExpr>, ApiError> {
        let conditions = self.conditions.unwrap_or_default();
        if conditions.is_empty() {
            return Ok(None);
        }
        let expression =
            |(at, condition): (usize, ConditionInput)| condition.check(&format!("{NAME}.conditions[{at}]"));
        let all = conditions.into_iter().enumerate().map(expression).collect::<Result<Vec<_>, _>>()?;
        let expr = match self.logical_operator.as_deref() {
            None | Some("and") => FilterExpr::And(all),
            Some("or") => FilterExpr::Or(all),
            Some(other) => {
                let place = format!("{NAME}.logical_operator");
                return Err(ApiError::invalid_parameter(&place, format!("{other:?}, expected and or or")));
            }
        };
        within_limits(NAME, &expr).map(Some)
    }
}

impl ConditionInput {
    fn check(self, place: &str) -> Result<FilterExpr, ApiError> {
        let field = attribute_field(&self.name);
        let (operator, is_negated) = self.operator(place)?;
        let operand = match operator {
            "eq" | "prefix" => self.value(place)?,
            "in" => self.list(place)?,
            "exists" => return comparison(place, &field, operator, Value::Bool(!is_negated)),
            "before" => return comparison(place, &field, "lt", self.time(place, &field)?),
            "after" => return comparison(place, &field, "gt", self.time(place, &field)?),
            "=" => return negated_if(is_negated, comparison(place, &field, "eq", self.number(place)?)),
            _ => self.number(place)?,
        };
        negated_if(is_negated, comparison(place, &field, operator, operand))
    }

    /// The operator, and whether it is negated.
    fn operator(&self, place: &str) -> Result<(&'static str, bool), ApiError> {
        Ok(match self.comparison_operator.as_str() {
            "is" => ("eq", false),
            "is not" => ("eq", true),
            "start with" => ("prefix", false),
            "in" => ("in", false),
            "not in" => ("in", true),
            "not empty" | "not null" => ("exists", false),
            "empty" | "null" => ("exists", true),
            "=" => ("=", false),
            "≠" => ("=", true),
            ">" => ("gt", false),
            "<" => ("lt", false),
            "≥" => ("gte", false),
            "≤" => ("lte", false),
            "before" => ("before", false),
            "after" => ("after", false),
            other => {
                let problem = if UNSUPPORTED.contains(&other) { "not supported" } else { "unknown" };
                let message = format!(
                    "the operator {other:?} is {problem}, expected is, is not, start with, in, not in, empty, not \
                     empty, =, ≠, >, <, ≥, ≤, before or after"
                );
                return Err(ApiError::invalid_parameter(&format!("{place}.comparison_operator"), message));
            }
        })
    }

    fn wrong_value(&self, place: &str, expected: &str) -> ApiError {
        let message = format!("{} needs {expected}", self.comparison_operator);
        ApiError::invalid_parameter(&format!("{place}.value"), message)
    }

    /// A string or a number.
    fn value(&self, place: &str) -> Result<Value, ApiError> {
        match &self.value {
            Some(value @ (Value::String(_) | Value::Number(_))) => Ok(value.clone()),
            _ => Err(self.wrong_value(place, "a string")),
        }
    }

    /// A list of strings. Dify also sends one string with commas.
    fn list(&self, place: &str) -> Result<Value, ApiError> {
        match &self.value {
            Some(list @ Value::Array(_)) => Ok(list.clone()),
            Some(Value::String(text)) => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                Ok(parts.map(Value::from).collect())
            }
            _ => Err(self.wrong_value(place, "a list of strings")),
        }
    }

    /// A number, or a string that is one.
    fn number(&self, place: &str) -> Result<Value, ApiError> {
        self.as_number().map(Value::Number).ok_or_else(|| self.wrong_value(place, "a number"))
    }

    fn as_number(&self) -> Option<Number> {
        match &self.value {
            Some(Value::Number(number)) => Some(number.clone()),
            Some(Value::String(text)) => text.trim().parse::<f64>().ok().and_then(Number::from_f64),
            _ => None,
        }
    }

    /// A time: of RFC 3339, or in Unix seconds, as Dify stores times.
    fn time(&self, place: &str, field: &str) -> Result<Value, ApiError> {
        let wrong = || self.wrong_value(place, "a date or time of RFC 3339, or Unix seconds");
        if let Some(Value::String(text)) = &self.value
            && Instant::parse(text).is_some()
        {
            return Ok(Value::from(text.clone()));
        }
        let seconds = self.as_number().ok_or_else(wrong)?;
        if !matches!(field, "created_at" | "updated_at") {
            return Ok(Value::Number(seconds));
        }
        let seconds = seconds.as_f64().filter(|seconds| seconds.abs() < 1e12).ok_or_else(wrong)?;
        let at = OffsetDateTime::from_unix_timestamp_nanos((seconds * 1e9) as i128).map_err(|_| wrong())?;
        Ok(Value::from(timestamp(at)))
    }
}

fn negated_if(is_negated: bool, expr: Result<FilterExpr, ApiError>) -> Result<FilterExpr, ApiError> {
    expr.map(|expr| if is_negated { FilterExpr::Not(Box::new(expr)) } else { expr })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(condition: Value) -> Result<Option<FilterExpr>, ApiError> {
        serde_json::from_value::<MetadataConditionInput>(condition).unwrap().check()
    }

    fn one(name: &str, operator: &str, value: Value) -> Result<Option<FilterExpr>, ApiError> {
        let mut condition = json!({"name": name, "comparison_operator": operator});
        condition["value"] = value;
        check(json!({"conditions": [condition]}))
    }

    #[test]
    fn every_operator_has_its_expression() {
        for (operator, value, expected) in [
            ("is", json!("x"), json!({"field": "metadata.k", "eq": "x"})),
            ("is", json!(7), json!({"field": "metadata.k", "eq": 7})),
            ("is not", json!("x"), json!({"not": {"field": "metadata.k", "eq": "x"}})),
            ("start with", json!("x"), json!({"field": "metadata.k", "prefix": "x"})),
            ("in", json!(["x", "y"]), json!({"field": "metadata.k", "in": ["x", "y"]})),
            ("in", json!("x, y,"), json!({"field": "metadata.k", "in": ["x", "y"]})),
            ("not in", json!(["x"]), json!({"not": {"field": "metadata.k", "in": ["x"]}})),
            ("empty", json!(null), json!({"field": "metadata.k", "exists": false})),
            ("not empty", json!(null), json!({"field": "metadata.k", "exists": true})),
            ("=", json!(7), json!({"field": "metadata.k", "eq": 7})),
            ("=", json!("7.5"), json!({"field": "metadata.k", "eq": 7.5})),
            ("≠", json!(7), json!({"not": {"field": "metadata.k", "eq": 7}})),
            (">", json!(7), json!({"field": "metadata.k", "gt": 7})),
            ("<", json!(7), json!({"field": "metadata.k", "lt": 7})),
            ("≥", json!(7), json!({"field": "metadata.k", "gte": 7})),
            ("≤", json!(7), json!({"field": "metadata.k", "lte": 7})),
            ("before", json!("2026-01-01"), json!({"field": "metadata.k", "lt": "2026-01-01"})),
            ("after", json!(1_767_225_600), json!({"field": "metadata.k", "gt": 1_767_225_600})),
        ] {
            let expected = FilterExpr::parse("where", &json!({"and": [expected]})).unwrap();
            assert_eq!(one("k", operator, value.clone()).unwrap().unwrap(), expected, "{operator} {value}");
        }
        let expected = json!({"and": [{"field": "created_at", "gt": "2026-01-01T00:00:00Z"}]});
        let expected = FilterExpr::parse("where", &expected).unwrap();
        assert_eq!(one("lkr.created_at", "after", json!(1_767_225_600)).unwrap().unwrap(), expected);
    }

    #[test]
    fn conditions_are_combined() {
        let conditions = json!([
            {"name": "a", "comparison_operator": "is", "value": "x"},
            {"name": "lkr.source", "comparison_operator": "is", "value": "y"},
        ]);
        for operator in ["and", "or"] {
            let expected =
                json!({operator: [{"field": "metadata.a", "eq": "x"}, {"field": "source", "eq": "y"}]});
            let expected = FilterExpr::parse("where", &expected).unwrap();
            let condition = json!({"logical_operator": operator, "conditions": conditions});
            assert_eq!(check(condition).unwrap(), Some(expected));
        }
        for nothing in
            [json!({}), json!({"logical_operator": "or", "conditions": []}), json!({"conditions": null})]
        {
            assert_eq!(check(nothing).unwrap(), None);
        }
    }

    #[test]
    fn error_names_the_place_and_the_operator() {
        let place = "metadata_condition.conditions[0]";
        for operator in ["contains", "not contains", "end with", "like", ""] {
            let message = one("k", operator, json!("x")).unwrap_err().message;
            assert!(message.starts_with(&format!("{place}.comparison_operator: ")), "{message}");
            assert!(message.contains(&format!("{operator:?}")), "{message}");
        }
        for (operator, value) in [
            ("is", json!(null)),
            ("is", json!(["x"])),
            ("in", json!(7)),
            (">", json!("many")),
            (">", json!("NaN")),
            ("before", json!("yesterday")),
        ] {
            let message = one("k", operator, value).unwrap_err().message;
            assert!(message.starts_with(&format!("{place}.value: {operator} needs")), "{message}");
        }
        assert!(one("k", "in", json!([])).unwrap_err().message.starts_with(&format!("{place}.in: ")));
        assert!(one("lkr.x", "is", json!("x")).unwrap_err().message.starts_with(&format!("{place}.field: ")));
        let error = check(json!({"logical_operator": "xor", "conditions": [
            {"name": "a", "comparison_operator": "empty"},
        ]}));
        assert!(error.unwrap_err().message.starts_with("metadata_condition.logical_operator: \"xor\""));
    }
}

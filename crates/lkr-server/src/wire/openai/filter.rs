//! Filters of the OpenAI API as filter expressions.

use lkr::FilterExpr;
use serde_json::{Map, Value};

use crate::{
    error::ApiError,
    wire::filter_expr::{attribute_field, comparison, within_limits},
};

/// The name of the filter in requests, which begins the places in errors.
const NAME: &str = "filters";

/// The expression of a filter.
///
/// # Errors
/// `Invalid`, with the place that is wrong.
pub(crate) fn filter_expr(json: &Value) -> Result<FilterExpr, ApiError> {
    within_limits(NAME, &filter(NAME, json)?)
}

fn filter(place: &str, json: &Value) -> Result<FilterExpr, ApiError> {
    let Value::Object(object) = json else {
        return Err(ApiError::invalid_parameter(place, "a filter is an object"));
    };
    match object.get("type").and_then(Value::as_str) {
        Some("and") => Ok(FilterExpr::And(parts(place, object)?)),
        Some("or") => Ok(FilterExpr::Or(parts(place, object)?)),
        Some(operator @ ("eq" | "gt" | "gte" | "lt" | "lte" | "in")) => test(place, object, operator),
        Some("ne") => test(place, object, "eq").map(negated),
        Some("nin") => test(place, object, "in").map(negated),
        _ => {
            let expected = "expected eq, ne, gt, gte, lt, lte, in, nin, and or or";
            Err(ApiError::invalid_parameter(&format!("{place}.type"), expected))
        }
    }
}

fn negated(expr: FilterExpr) -> FilterExpr {
    FilterExpr::Not(Box::new(expr))
}

/// The filters of `and` or `or`.
fn parts(place: &str, object: &Map<String, Value>) -> Result<Vec<FilterExpr>, ApiError> {
    check_keys(place, object, &["type", "filters"])?;
    let list = format!("{place}.filters");
    let filters = object.get("filters").and_then(Value::as_array).filter(|filters| !filters.is_empty());
    let filters = filters.ok_or_else(|| ApiError::invalid_parameter(&list, "expected a list of filters"))?;
    filters.iter().enumerate().map(|(at, json)| filter(&format!("{list}[{at}]"), json)).collect()
}

/// The comparison of an attribute.
fn test(place: &str, object: &Map<String, Value>, operator: &str) -> Result<FilterExpr, ApiError> {
    check_keys(place, object, &["type", "key", "value"])?;
    let key = object.get("key").and_then(Value::as_str);
    let key = key.ok_or_else(|| {
        ApiError::invalid_parameter(&format!("{place}.key"), "expected the name of an attribute")
    })?;
    let operand = match object.get("value") {
        Some(Value::Array(values)) => Value::Array(values.iter().map(operand).collect()),
        Some(Value::Bool(_)) if operator != "eq" => {
            let message = format!("true and false have no order, so they cannot stand with {operator}");
            return Err(ApiError::invalid_parameter(&format!("{place}.value"), message));
        }
        Some(value) => operand(value),
        None => return Err(ApiError::invalid_parameter(&format!("{place}.value"), "it is missing")),
    };
    comparison(place, &attribute_field(key), operator, operand)
}

/// A value as metadata has it, which are strings: `true` and `false` are compared as those words.
fn operand(value: &Value) -> Value {
    match value {
        Value::Bool(value) => Value::String(value.to_string()),
        other => other.clone(),
    }
}

fn check_keys(place: &str, object: &Map<String, Value>, known: &[&str]) -> Result<(), ApiError> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let message = format!("unknown key, expected {}", known.join(", "));
            Err(ApiError::invalid_parameter(&format!("{place}.{key}"), message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(json: &Value) -> String {
        filter_expr(json).unwrap_err().message
    }

    #[test]
    fn every_filter_has_its_expression() {
        for (filter, expected) in [
            (json!({"type": "eq", "key": "a", "value": "x"}), json!({"field": "metadata.a", "eq": "x"})),
            (json!({"type": "eq", "key": "a", "value": true}), json!({"field": "metadata.a", "eq": "true"})),
            (json!({"type": "ne", "key": "a", "value": 1}), json!({"not": {"field": "metadata.a", "eq": 1}})),
            (json!({"type": "gte", "key": "a.b", "value": 2}), json!({"field": "metadata.a.b", "gte": 2})),
            (json!({"type": "gt", "key": "a", "value": 2}), json!({"field": "metadata.a", "gt": 2})),
            (json!({"type": "lt", "key": "a", "value": 2}), json!({"field": "metadata.a", "lt": 2})),
            (
                json!({"type": "lte", "key": "lkr.created_at", "value": "2026-01-01"}),
                json!({"field": "created_at", "lte": "2026-01-01"}),
            ),
            (
                json!({"type": "in", "key": "a", "value": ["x", "y"]}),
                json!({"field": "metadata.a", "in": ["x", "y"]}),
            ),
            (
                json!({"type": "nin", "key": "lkr.source", "value": ["x"]}),
                json!({"not": {"field": "source", "eq": "x"}}),
            ),
            (
                json!({"type": "or", "filters": [
                    {"type": "and", "filters": [{"type": "eq", "key": "a", "value": "x"}]},
                    {"type": "eq", "key": "b", "value": "y"},
                ]}),
                json!({"or": [
                    {"and": [{"field": "metadata.a", "eq": "x"}]},
                    {"field": "metadata.b", "eq": "y"},
                ]}),
            ),
        ] {
            let expected = FilterExpr::parse("where", &expected).unwrap();
            assert_eq!(filter_expr(&filter).unwrap(), expected, "{filter}");
        }
    }

    #[test]
    fn error_names_the_place() {
        for (filter, place) in [
            (json!([]), "filters: "),
            (json!({}), "filters.type: "),
            (json!({"type": "like", "key": "a", "value": "x"}), "filters.type: "),
            (json!({"type": "eq", "value": "x"}), "filters.key: "),
            (json!({"type": "eq", "key": "a"}), "filters.value: "),
            (json!({"type": "eq", "key": "a", "value": null}), "filters.eq: "),
            (json!({"type": "gt", "key": "a", "value": true}), "filters.value: "),
            (json!({"type": "in", "key": "a", "value": "x"}), "filters.in: "),
            (json!({"type": "in", "key": "a", "value": []}), "filters.in: "),
            (json!({"type": "eq", "key": "a", "value": "x", "case": 1}), "filters.case: "),
            (json!({"type": "eq", "key": "lkr.nothing", "value": "x"}), "filters.field: "),
            (json!({"type": "and", "filters": []}), "filters.filters: "),
            (json!({"type": "and", "filters": [{"type": "or"}]}), "filters.filters[0].filters: "),
        ] {
            let message = refused(&filter);
            assert!(message.starts_with(place), "{filter}: {message}");
        }
        let leaf = json!({"type": "eq", "key": "a", "value": "x"});
        assert!(refused(&json!({"type": "or", "filters": vec![&leaf; 64]})).contains("more than 64"));
        let deep = (0..8).fold(leaf, |inner, _| json!({"type": "and", "filters": [inner]}));
        assert!(refused(&deep).contains("more than 8 deep"));
    }
}

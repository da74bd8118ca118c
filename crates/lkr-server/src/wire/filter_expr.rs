//! Filter expressions in requests.

use std::fmt;

use lkr::FilterExpr;
use serde::{Deserialize, Deserializer, de};
use serde_json::{Map, Number, Value};

use crate::error::ApiError;

/// The name of the expression in requests, which begins the places in errors.
const NAME: &str = "where";

/// The longest expression in a query, in bytes of JSON.
const MAX_QUERY_BYTES: usize = 16 * 1024;

/// The JSON of an expression. A key that occurs twice in an object is an error.
#[derive(Debug, Clone)]
pub(crate) struct FilterExprJson(Value);

impl FilterExprJson {
    /// The expression.
    ///
    /// # Errors
    /// `Invalid`, with the place that is wrong.
    pub(crate) fn check(&self) -> Result<FilterExpr, ApiError> {
        parse(NAME, &self.0)
    }

    /// The JSON, for another notation of expressions.
    pub(crate) const fn as_value(&self) -> &Value {
        &self.0
    }

    /// The expression of a query parameter.
    ///
    /// # Errors
    /// `Invalid` if it is too long, is not JSON, or is no expression.
    pub(crate) fn from_query(text: &str) -> Result<FilterExpr, ApiError> {
        if text.len() > MAX_QUERY_BYTES {
            let bytes = text.len();
            return Err(ApiError::invalid(format!(
                "{NAME} has {bytes} bytes, at most {MAX_QUERY_BYTES} are allowed"
            )));
        }
        let json: Self = serde_json::from_str(text)
            .map_err(|error| ApiError::invalid(format!("{NAME} is not valid JSON: {error}")))?;
        json.check()
    }
}

/// What begins the names by which clients of other protocols ask for a field that is no metadata: `lkr.source`.
const FIELD_PREFIX: &str = "lkr.";

/// The field that a client of another protocol means by the name of an attribute: a metadata key, or `lkr.` and the name of
/// another field.
pub(crate) fn attribute_field(name: &str) -> String {
    name.strip_prefix(FIELD_PREFIX).map_or_else(|| format!("metadata.{name}"), str::to_owned)
}

/// The name of a field as an attribute.
pub(crate) fn attribute_name(field: &str) -> String {
    format!("{FIELD_PREFIX}{field}")
}

/// A field with one operator. `place` begins the places in errors.
pub(crate) fn comparison(
    place: &str,
    field: &str,
    operator: &str,
    operand: Value,
) -> Result<FilterExpr, ApiError> {
    let entries = [("field".to_owned(), Value::from(field)), (operator.to_owned(), operand)];
    parse(place, &Value::Object(Map::from_iter(entries)))
}

/// An expression that was put together, if it is within the limits of a parsed one.
pub(crate) fn within_limits(place: &str, expr: &FilterExpr) -> Result<FilterExpr, ApiError> {
    parse(place, &expr.to_json())
}

fn parse(place: &str, json: &Value) -> Result<FilterExpr, ApiError> {
    FilterExpr::parse(place, json).map_err(|error| ApiError::invalid_parameter(&error.place, error.problem))
}

impl<'de> Deserialize<'de> for FilterExprJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

/// Builds a value, as serde_json does, but refuses duplicate keys.
struct JsonVisitor;

impl<'de> de::Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a filter expression")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(FilterExprJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some((key, FilterExprJson(value))) = entries.next_entry::<String, _>()? {
            if object.contains_key(&key) {
                return Err(de::Error::custom(format_args!("duplicate key {key:?}")));
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        FilterExprJson::from_query(text).unwrap_err().message
    }

    #[test]
    fn from_query_names_what_is_wrong() {
        let expr = FilterExprJson::from_query(r#"{"field": "title", "gte": 1.5}"#).unwrap();
        assert_eq!(expr.to_json(), json!({"field": "title", "gte": 1.5}));
        assert!(refused("{").starts_with("where is not valid JSON"));
        assert!(refused("").starts_with("where is not valid JSON"));
        assert!(refused(r#"{"field": "title", "eq": 1, "eq": 2}"#).contains(r#"duplicate key "eq""#));
        assert_eq!(
            refused(r#"{"not": {"field": "title", "eq": null}}"#).split(": ").next(),
            Some("where.not.eq")
        );
        let long = format!(r#"{{"field": "title", "eq": "{}"}}"#, "x".repeat(MAX_QUERY_BYTES));
        assert!(refused(&long).contains("at most 16384"));
    }
}

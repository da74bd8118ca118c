//! Serializes a schema with its properties in the order of `required`. Models write the properties in the order of the
//! schema, so the first ones survive if an answer is truncated.

use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::{Map, Value};

/// A schema whose properties are serialized in the order of `required`.
pub(crate) struct OrderedSchema<'a>(pub(crate) &'a Value);

impl Serialize for OrderedSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("properties", Value::Object(properties)) => {
                            let required = fields.get("required").and_then(Value::as_array);
                            map.serialize_entry(name, &Properties(properties, required))?;
                        }
                        _ => map.serialize_entry(name, &OrderedSchema(value))?,
                    }
                }
                map.end()
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(OrderedSchema)),
            scalar => scalar.serialize(serializer),
        }
    }
}

struct Properties<'a>(&'a Map<String, Value>, Option<&'a Vec<Value>>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(properties, required) = self;
        let position = |name: &str| required.and_then(|names| names.iter().position(|other| other == name));
        let mut ordered: Vec<_> = properties.iter().collect();
        ordered.sort_by_key(|(name, _)| position(name).unwrap_or(usize::MAX));
        serializer.collect_map(ordered.into_iter().map(|(name, value)| (name, OrderedSchema(value))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn properties_are_serialized_in_the_order_of_required() {
        let part = json!({ "type": "object", "properties": { "a": {}, "n": {} }, "required": ["n", "a"] });
        let schema = json!({
            "type": "object", "required": ["z", "list"],
            "properties": { "list": { "items": part }, "free": true, "z": { "enum": ["b", "a"] } },
        });
        let written = serde_json::to_string(&OrderedSchema(&schema)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), schema);
        let position = |part: &str| written.find(part).unwrap();
        assert!(
            position("\"z\":{") < position("\"list\":{") && position("\"list\":{") < position("\"free\":"),
            "{written}"
        );
        assert!(
            position("\"n\":{}") < position("\"a\":{}") && written.contains("[\"b\",\"a\"]"),
            "{written}"
        );
    }

    proptest! {
        #[test]
        fn ordering_does_not_change_the_schema(
            text in "[a-z{}\\[\\]:,\" 0-9]{0,60}",
            keys in prop::collection::vec("[a-c]", 0..4),
        ) {
            let inner = serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text));
            let value = json!({ "properties": { "a": inner, "b": keys }, "required": keys, "x": [{ "properties": 1 }] });
            let written = serde_json::to_string(&OrderedSchema(&value)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), value);
        }
    }
}

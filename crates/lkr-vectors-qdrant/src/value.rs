//! Values of payloads.

use std::collections::HashMap;

use qdrant_client::qdrant::{ListValue, Struct, Value, value::Kind};

/// A payload, or an object in one.
pub(crate) type Fields = HashMap<String, Value>;

pub(crate) fn text(text: impl Into<String>) -> Value {
    Value { kind: Some(Kind::StringValue(text.into())) }
}

pub(crate) const fn integer(number: i64) -> Value {
    Value { kind: Some(Kind::IntegerValue(number)) }
}

pub(crate) const fn double(number: f64) -> Value {
    Value { kind: Some(Kind::DoubleValue(number)) }
}

pub(crate) fn list(values: impl IntoIterator<Item = Value>) -> Value {
    Value { kind: Some(Kind::ListValue(ListValue { values: values.into_iter().collect() })) }
}

pub(crate) const fn object(fields: Fields) -> Value {
    Value { kind: Some(Kind::StructValue(Struct { fields })) }
}

pub(crate) fn as_text(value: &Value) -> Option<&str> {
    match &value.kind {
        Some(Kind::StringValue(text)) => Some(text),
        _ => None,
    }
}

pub(crate) const fn as_integer(value: &Value) -> Option<i64> {
    match value.kind {
        Some(Kind::IntegerValue(number)) => Some(number),
        _ => None,
    }
}

pub(crate) const fn as_object(value: &Value) -> Option<&Fields> {
    match &value.kind {
        Some(Kind::StructValue(Struct { fields })) => Some(fields),
        _ => None,
    }
}

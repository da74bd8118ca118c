use pdf_oxide::{
    PdfDocument,
    object::{Object, ObjectRef},
};

use crate::outline::{Id, Objects, Value};

/// Values nested deeper than this are ignored.
const MAX_DEPTH: u8 = 8;

impl Objects for PdfDocument {
    fn object(&self, (number, generation): Id) -> Option<Value> {
        Some(value(&self.load_object(ObjectRef::new(number, generation)).ok()?, 0))
    }

    fn catalog(&self) -> Option<Value> {
        Some(value(&Self::catalog(self).ok()?, 0))
    }
}

fn value(object: &Object, depth: u8) -> Value {
    match object {
        _ if depth > MAX_DEPTH => Value::Other,
        Object::Integer(number) => Value::Number(*number as f64),
        Object::Real(number) => Value::Number(*number),
        Object::String(bytes) => Value::Text(bytes.clone()),
        Object::Name(name) => Value::Name(name.clone().into_bytes()),
        Object::Array(items) => Value::Array(items.iter().map(|item| value(item, depth + 1)).collect()),
        Object::Dictionary(entries) => Value::Dictionary(
            entries.iter().map(|(key, item)| (key.clone().into_bytes(), value(item, depth + 1))).collect(),
        ),
        Object::Reference(reference) => Value::Reference((reference.id, reference.r#gen)),
        Object::Null | Object::Boolean(_) | Object::Stream { .. } => Value::Other,
    }
}

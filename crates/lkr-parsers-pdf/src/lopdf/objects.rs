use lopdf::{Document, Object};

use crate::outline::{Id, Objects, Value};

/// Values nested deeper than this are ignored.
const MAX_DEPTH: u8 = 8;

impl Objects for Document {
    fn object(&self, id: Id) -> Option<Value> {
        Some(value(self.get_object(id).ok()?, 0))
    }

    fn catalog(&self) -> Option<Value> {
        let catalog = Self::catalog(self).ok()?;
        Some(Value::Dictionary(catalog.iter().map(|(key, item)| (key.clone(), value(item, 1))).collect()))
    }
}

fn value(object: &Object, depth: u8) -> Value {
    match object {
        _ if depth > MAX_DEPTH => Value::Other,
        Object::Integer(number) => Value::Number(*number as f64),
        Object::Real(number) => Value::Number(f64::from(*number)),
        Object::String(bytes, _) => Value::Text(bytes.clone()),
        Object::Name(name) => Value::Name(name.clone()),
        Object::Array(items) => Value::Array(items.iter().map(|item| value(item, depth + 1)).collect()),
        Object::Dictionary(entries) => Value::Dictionary(
            entries.iter().map(|(key, item)| (key.clone(), value(item, depth + 1))).collect(),
        ),
        Object::Reference(id) => Value::Reference(*id),
        _ => Value::Other,
    }
}

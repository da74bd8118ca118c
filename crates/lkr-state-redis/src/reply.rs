//! Answers of scripts: arrays of strings and numbers.

use deadpool_redis::redis::Value;
use lkr_state::Result;

use crate::error::unexpected;

/// The parts of an answer, in order.
pub(crate) struct Reply {
    operation: &'static str,
    parts: std::vec::IntoIter<Value>,
}

impl Reply {
    pub(crate) fn new(operation: &'static str, value: Value) -> Result<Self> {
        match value {
            Value::Array(parts) => Ok(Self { operation, parts: parts.into_iter() }),
            _ => unexpected(operation),
        }
    }

    /// The number of parts that are left.
    pub(crate) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The next part; `None` if it is nil.
    pub(crate) fn optional_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        match self.parts.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes)),
            Some(Value::SimpleString(text)) => Ok(Some(text.into_bytes())),
            Some(Value::Int(number)) => Ok(Some(number.to_string().into_bytes())),
            Some(Value::Nil) => Ok(None),
            _ => unexpected(self.operation),
        }
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>> {
        self.optional_bytes()?.map_or_else(|| unexpected(self.operation), Ok)
    }

    pub(crate) fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).or_else(|_| unexpected(self.operation))
    }

    pub(crate) fn number(&mut self) -> Result<u64> {
        self.text()?.parse().or_else(|_| unexpected(self.operation))
    }
}

/// A text that a command answered; `None` if it is nil.
pub(crate) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        Value::VerbatimString { text, .. } => Some(text.clone()),
        Value::Int(number) => Some(number.to_string()),
        _ => None,
    }
}

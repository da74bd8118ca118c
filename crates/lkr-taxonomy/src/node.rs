//! The syntax tree of a taxonomy file: values with their line numbers.

use std::fmt;

/// The deepest nesting that is accepted; a taxonomy needs four levels.
pub(crate) const MAX_DEPTH: usize = 8;

/// A value and the line on which it begins, counted from 1.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Bool,
    Number,
    Text(String),
    List(Vec<Node>),
    /// The entries in file order; a key may occur twice.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) name: String,
}

impl Value {
    /// The type name for error messages.
    pub(crate) const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

/// A mistake in a taxonomy file, with its line.
#[derive(Debug)]
pub(crate) struct ParseError {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl ParseError {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }

    pub(crate) fn too_deep(line: usize) -> Self {
        Self::new(line, format!("values are nested deeper than {MAX_DEPTH} levels"))
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

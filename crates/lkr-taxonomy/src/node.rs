//! What a file says before it is known whether that is a taxonomy: values with their lines.

use std::fmt;

/// How deep values may lie in each other; a taxonomy needs four levels.
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
    /// The entries in their order; a key may occur twice.
    Map(Vec<(Key, Node)>),
}

#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) name: String,
}

impl Value {
    /// What it is, as a message says it.
    pub(crate) const fn what(&self) -> &'static str {
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

/// What is wrong with a file, and on which line.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(line: usize, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }

    pub(crate) fn too_deep(line: usize) -> Self {
        Self::new(line, "values lie too deep in each other")
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for Fault {}

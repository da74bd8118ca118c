//! Parses JSON into nodes. `serde_json` validates the text first. A second pass adds line numbers, because `serde_json`
//! does not report them for values.

use serde::de::IgnoredAny;

use crate::node::{Key, MAX_DEPTH, Node, ParseError, Value};

pub(crate) fn parse(text: &str) -> Result<Node, ParseError> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| parse_error(error.line(), &error))?;
    LineTracker { rest: text, line: 1 }.node(0)
}

fn parse_error(line: usize, error: &serde_json::Error) -> ParseError {
    let message = error.to_string();
    let message = message.split_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    ParseError::new(line.max(1), message)
}

/// Parses text that is known to be valid JSON and counts its lines.
struct LineTracker<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> LineTracker<'a> {
    fn node(&mut self, depth: usize) -> Result<Node, ParseError> {
        let first = self.peek();
        let line = self.line;
        if depth >= MAX_DEPTH {
            return Err(ParseError::too_deep(line));
        }
        let value = match first {
            Some('{') => Value::Map(self.map(depth)?),
            Some('[') => Value::List(self.list(depth)?),
            Some('"') => Value::Text(self.string()?),
            _ => match self.consume_while(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
                "null" => Value::Null,
                "true" | "false" => Value::Bool,
                _ => Value::Number,
            },
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, ParseError> {
        let mut items = Vec::new();
        self.consume_char();
        while !matches!(self.peek(), Some(']') | None) {
            items.push(self.node(depth + 1)?);
            self.consume_if(',');
        }
        self.consume_char();
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, ParseError> {
        let mut entries = Vec::new();
        self.consume_char();
        while !matches!(self.peek(), Some('}') | None) {
            let key = Key { line: self.line, name: self.string()? };
            self.consume_if(':');
            entries.push((key, self.node(depth + 1)?));
            self.consume_if(',');
        }
        self.consume_char();
        Ok(entries)
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let literal = self.consume(end.map_or(self.rest.len(), |(at, quote)| at + quote.len_utf8()));
        serde_json::from_str(literal).map_err(|error| parse_error(self.line, &error))
    }

    /// Skips whitespace and returns the next character without consuming it.
    fn peek(&mut self) -> Option<char> {
        let whitespace = self.consume_while(|c| c.is_ascii_whitespace());
        self.line += whitespace.matches('\n').count();
        self.rest.chars().next()
    }

    fn consume_if(&mut self, expected: char) {
        if self.peek() == Some(expected) {
            self.consume_char();
        }
    }

    fn consume_char(&mut self) {
        self.consume(1);
    }

    fn consume_while(&mut self, matches: impl Fn(char) -> bool) -> &'a str {
        self.consume(self.rest.find(|c| !matches(c)).unwrap_or(self.rest.len()))
    }

    fn consume(&mut self, length: usize) -> &'a str {
        let (head, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }
}

//! JSON to nodes. `serde_json` says whether the text is JSON; then a walk over it finds the lines, which
//! `serde_json` does not tell of values.

use serde::de::IgnoredAny;

use crate::node::{Fault, Key, MAX_DEPTH, Node, Value};

pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| fault(error.line(), &error))?;
    Walk { rest: text, line: 1 }.node(0)
}

fn fault(line: usize, error: &serde_json::Error) -> Fault {
    let message = error.to_string();
    let message = message.split_once(" at line ").map_or(message.as_str(), |(message, _)| message);
    Fault::new(line.max(1), message)
}

/// What is still to be read of a text that is known to be JSON.
struct Walk<'a> {
    rest: &'a str,
    line: usize,
}

impl<'a> Walk<'a> {
    fn node(&mut self, depth: usize) -> Result<Node, Fault> {
        let first = self.peek();
        let line = self.line;
        if depth >= MAX_DEPTH {
            return Err(Fault::too_deep(line));
        }
        let value = match first {
            Some('{') => Value::Map(self.map(depth)?),
            Some('[') => Value::List(self.list(depth)?),
            Some('"') => Value::Text(self.string()?),
            _ => match self.take(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
                "null" => Value::Null,
                "true" | "false" => Value::Bool,
                _ => Value::Number,
            },
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        self.step();
        while !matches!(self.peek(), Some(']') | None) {
            items.push(self.node(depth + 1)?);
            self.skip(',');
        }
        self.step();
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, Fault> {
        let mut entries = Vec::new();
        self.step();
        while !matches!(self.peek(), Some('}') | None) {
            let key = Key { line: self.line, name: self.string()? };
            self.skip(':');
            entries.push((key, self.node(depth + 1)?));
            self.skip(',');
        }
        self.step();
        Ok(entries)
    }

    fn string(&mut self) -> Result<String, Fault> {
        let mut escaped = false;
        let end = self.rest.char_indices().skip(1).find(|&(_, c)| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let literal = self.cut(end.map_or(self.rest.len(), |(at, quote)| at + quote.len_utf8()));
        serde_json::from_str(literal).map_err(|error| fault(self.line, &error))
    }

    /// The next character that is not a blank.
    fn peek(&mut self) -> Option<char> {
        let blanks = self.take(|c| c.is_ascii_whitespace());
        self.line += blanks.matches('\n').count();
        self.rest.chars().next()
    }

    fn skip(&mut self, wanted: char) {
        if self.peek() == Some(wanted) {
            self.step();
        }
    }

    fn step(&mut self) {
        self.cut(1);
    }

    fn take(&mut self, part: impl Fn(char) -> bool) -> &'a str {
        self.cut(self.rest.find(|c| !part(c)).unwrap_or(self.rest.len()))
    }

    fn cut(&mut self, length: usize) -> &'a str {
        let (head, rest) = self.rest.split_at_checked(length).unwrap_or((self.rest, ""));
        self.rest = rest;
        head
    }
}

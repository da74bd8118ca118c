//! Parses YAML into nodes: one document of plain values. Aliases, anchors and tags are refused, so that a small file
//! cannot expand into a large one.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::node::{Key, MAX_DEPTH, Node, ParseError, Value};

pub(crate) fn parse(text: &str) -> Result<Node, ParseError> {
    let mut reader = Reader { events: Parser::new_from_str(text), line: 1 };
    let mut root = None;
    while let Some(event) = reader.next()? {
        match event {
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => {}
            _ if root.is_some() => {
                return Err(ParseError::new(
                    reader.line,
                    "a second document starts here; a taxonomy file contains one document",
                ));
            }
            event => root = Some(reader.node(event, 0)?),
        }
    }
    root.ok_or_else(|| ParseError::new(1, "the file is empty"))
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// The line on which the last event began.
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<Event<'a>>, ParseError> {
        match self.events.next() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(Some(event))
            }
            Some(Err(error)) => Err(ParseError::new(error.marker().line(), error.info())),
        }
    }

    /// The next event inside a list or mapping; the end of the file is an error there.
    fn next_inside(&mut self) -> Result<Event<'a>, ParseError> {
        self.next()?.ok_or_else(|| ParseError::new(self.line, "the file ends inside a list or mapping"))
    }

    fn node(&mut self, event: Event<'_>, depth: usize) -> Result<Node, ParseError> {
        let line = self.line;
        if depth >= MAX_DEPTH {
            return Err(ParseError::too_deep(line));
        }
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                refuse_anchor_and_tag(line, anchor, tag.as_deref())?;
                scalar(text.into_owned(), style)
            }
            Event::SequenceStart(anchor, tag) => {
                refuse_anchor_and_tag(line, anchor, tag.as_deref())?;
                Value::List(self.list(depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                refuse_anchor_and_tag(line, anchor, tag.as_deref())?;
                Value::Map(self.map(depth)?)
            }
            Event::Alias(_) => {
                return Err(ParseError::new(line, "aliases are not supported; write the value out"));
            }
            _ => return Err(ParseError::new(line, "expected a value")),
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, ParseError> {
        let mut items = Vec::new();
        loop {
            match self.next_inside()? {
                Event::SequenceEnd => return Ok(items),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, ParseError> {
        let mut entries = Vec::new();
        loop {
            let event = self.next_inside()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(entries);
            }
            let Node { line, value } = self.node(event, depth + 1)?;
            let Value::Text(name) = value else {
                return Err(ParseError::new(
                    line,
                    format!("a key must be a text, not {}", value.type_name()),
                ));
            };
            let event = self.next_inside()?;
            let block = matches!(event, Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..));
            let mut node = self.node(event, depth + 1)?;
            // The parser reports a block text at its first word, and an omitted value at the next token. The key's line
            // is more useful.
            if block || matches!(node.value, Value::Null) {
                node.line = line;
            }
            entries.push((Key { line, name }, node));
        }
    }
}

fn refuse_anchor_and_tag(line: usize, anchor: usize, tag: Option<&Tag>) -> Result<(), ParseError> {
    if anchor != 0 {
        return Err(ParseError::new(line, "anchors are not supported; remove the anchor"));
    }
    if tag.is_some() {
        return Err(ParseError::new(line, "tags are not supported; remove the tag"));
    }
    Ok(())
}

/// Resolves a scalar by YAML's core schema: a quoted or block scalar is always a text.
fn scalar(text: String, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(text);
    }
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Value::Bool,
        number if is_number(number) => Value::Number,
        _ => Value::Text(text),
    }
}

fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let has_base = |prefix, base| {
        text.strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base)))
    };
    matches!(unsigned, ".inf" | ".Inf" | ".INF")
        || matches!(text, ".nan" | ".NaN" | ".NAN")
        || unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit()) && unsigned.parse::<f64>().is_ok()
        || has_base("0x", 16)
        || has_base("0o", 8)
}

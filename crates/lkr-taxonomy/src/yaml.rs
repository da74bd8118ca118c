//! YAML to nodes. One document of plain values: aliases, anchors and tags are refused, so that a small file cannot
//! stand for a large one.

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput, Tag};

use crate::node::{Fault, Key, MAX_DEPTH, Node, Value};

pub(crate) fn parse(text: &str) -> Result<Node, Fault> {
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
                return Err(Fault::new(reader.line, "a second document; a taxonomy is one"));
            }
            event => root = Some(reader.node(event, 0)?),
        }
    }
    root.ok_or_else(|| Fault::new(1, "the file is empty"))
}

struct Reader<'a> {
    events: Parser<'a, StrInput<'a>>,
    /// Where the last event began.
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<Event<'a>>, Fault> {
        match self.events.next() {
            None => Ok(None),
            Some(Ok((event, span))) => {
                self.line = span.start.line();
                Ok(Some(event))
            }
            Some(Err(error)) => Err(Fault::new(error.marker().line(), error.info())),
        }
    }

    /// The next event inside a list or mapping, which ends before its file does.
    fn inner(&mut self) -> Result<Event<'a>, Fault> {
        self.next()?.ok_or_else(|| Fault::new(self.line, "the file ends too early"))
    }

    fn node(&mut self, event: Event<'_>, depth: usize) -> Result<Node, Fault> {
        let line = self.line;
        if depth >= MAX_DEPTH {
            return Err(Fault::too_deep(line));
        }
        let value = match event {
            Event::Scalar(text, style, anchor, tag) => {
                check_plain(line, anchor, tag.as_deref())?;
                scalar(text.into_owned(), style)
            }
            Event::SequenceStart(anchor, tag) => {
                check_plain(line, anchor, tag.as_deref())?;
                Value::List(self.list(depth)?)
            }
            Event::MappingStart(anchor, tag) => {
                check_plain(line, anchor, tag.as_deref())?;
                Value::Map(self.map(depth)?)
            }
            Event::Alias(_) => return Err(Fault::new(line, "an alias; write the value out")),
            _ => return Err(Fault::new(line, "no value")),
        };
        Ok(Node { line, value })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Fault> {
        let mut items = Vec::new();
        loop {
            match self.inner()? {
                Event::SequenceEnd => return Ok(items),
                event => items.push(self.node(event, depth + 1)?),
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Vec<(Key, Node)>, Fault> {
        let mut entries = Vec::new();
        loop {
            let event = self.inner()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(entries);
            }
            let Node { line, value } = self.node(event, depth + 1)?;
            let Value::Text(name) = value else {
                return Err(Fault::new(line, format!("a key is a text, not {}", value.what())));
            };
            let event = self.inner()?;
            let block = matches!(event, Event::Scalar(_, ScalarStyle::Literal | ScalarStyle::Folded, ..));
            let mut node = self.node(event, depth + 1)?;
            // The parser sees a block text where its first words are, and a value that is left out where the next
            // thing begins.
            if block || matches!(node.value, Value::Null) {
                node.line = line;
            }
            entries.push((Key { line, name }, node));
        }
    }
}

fn check_plain(line: usize, anchor: usize, tag: Option<&Tag>) -> Result<(), Fault> {
    if anchor != 0 {
        return Err(Fault::new(line, "an anchor; a taxonomy has none"));
    }
    if tag.is_some() {
        return Err(Fault::new(line, "a tag; a taxonomy has none"));
    }
    Ok(())
}

/// What a scalar is by YAML's core schema: only what stands without quotes can be anything but a text.
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
    let of_base = |prefix, base| {
        text.strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(base)))
    };
    matches!(unsigned, ".inf" | ".Inf" | ".INF")
        || matches!(text, ".nan" | ".NaN" | ".NAN")
        || unsigned.starts_with(|c: char| c == '.' || c.is_ascii_digit()) && unsigned.parse::<f64>().is_ok()
        || of_base("0x", 16)
        || of_base("0o", 8)
}

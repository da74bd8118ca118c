//! Reads YAML files with anchors and merge keys, as Docker Compose does.

use std::collections::HashMap;

use anyhow::{Context, Result, bail};
use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// The key whose value is a mapping, or a list of mappings, that the mapping around it takes over.
const MERGE: &str = "<<";

/// The first document of a file. All scalars are texts.
pub(crate) fn read(yaml: &str) -> Result<Value> {
    let mut reader = Reader { events: Parser::new_from_str(yaml), anchors: HashMap::new() };
    reader.value()?.context("the file is empty")
}

struct Reader<'a> {
    events: Parser<'a, saphyr_parser::StrInput<'a>>,
    /// The values that have a name, by the number of that name.
    anchors: HashMap<usize, Value>,
}

impl Reader<'_> {
    /// The next value; `None` at the end of a collection or of the file.
    fn value(&mut self) -> Result<Option<Value>> {
        loop {
            let Some(event) = self.events.next() else { return Ok(None) };
            let (event, _) = event?;
            let (anchor, value) = match event {
                Event::Scalar(text, _, anchor, _) => (anchor, Value::String(text.into_owned())),
                Event::SequenceStart(anchor, _) => (anchor, self.list()?),
                Event::MappingStart(anchor, _) => (anchor, self.mapping()?),
                Event::Alias(anchor) => {
                    let named = self.anchors.get(&anchor).context("an alias names nothing before it")?;
                    return Ok(Some(named.clone()));
                }
                Event::SequenceEnd | Event::MappingEnd | Event::StreamEnd => return Ok(None),
                _ => continue,
            };
            if anchor != 0 {
                self.anchors.insert(anchor, value.clone());
            }
            return Ok(Some(value));
        }
    }

    fn list(&mut self) -> Result<Value> {
        let mut items = Vec::new();
        while let Some(item) = self.value()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn mapping(&mut self) -> Result<Value> {
        let (mut entries, mut merged) = (Map::new(), Vec::new());
        while let Some(key) = self.value()? {
            let key = key.as_str().context("a key is no text")?.to_owned();
            let value = self.value()?.with_context(|| format!("{key} has no value"))?;
            match (key.as_str(), value) {
                (MERGE, Value::Array(items)) => merged.extend(items),
                (MERGE, value) => merged.push(value),
                (_, value) => drop(entries.insert(key, value)),
            }
        }
        for other in merged {
            let Value::Object(other) = other else { bail!("{MERGE} takes a mapping") };
            for (key, value) in other {
                entries.entry(key).or_insert(value);
            }
        }
        Ok(Value::Object(entries))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn aliases_and_merge_keys_are_filled_in() {
        let yaml = "x: &x {a: 1, b: [2, {c: 3}]}\ny: &y\n  d: \"4\"\none:\n  <<: *x\n  a: 5\ntwo:\n  <<: [*y, *x]\nthree: *y\n";
        let x = json!({ "a": "1", "b": ["2", { "c": "3" }] });
        let expected = json!({
            "x": x, "y": { "d": "4" },
            "one": { "a": "5", "b": ["2", { "c": "3" }] },
            "two": { "a": "1", "b": ["2", { "c": "3" }], "d": "4" },
            "three": { "d": "4" },
        });
        assert_eq!(read(yaml).unwrap(), expected);
    }

    #[test]
    fn invalid_files_are_refused() {
        for yaml in ["", "a: *nothing", "a: [1", "<<: 1"] {
            assert!(read(yaml).is_err(), "{yaml}");
        }
    }
}

use std::{collections::BTreeMap, fmt::Write, path::Path};

use anyhow::Result;
use serde::Deserialize;

use crate::collection::{lines::json_lines, name_of};

/// A document to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) text: String,
}

/// A row of `docs.jsonl` or `corpus.jsonl`.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
    /// The document that the row is a section of.
    doc_id: Option<String>,
    /// Where the section stands in it.
    #[serde(default)]
    order: u64,
}

/// The documents of a collection: those of `docs.jsonl` where it is there, else the rows of `corpus.jsonl`, those
/// that name the document they are a section of joined. A document's source is `<collection>:<id>`.
pub(crate) fn collection(dir: &Path) -> Result<Vec<Input>> {
    let name = name_of(dir)?;
    let docs = dir.join("docs.jsonl");
    let rows = if docs.exists() {
        json_lines::<Row>(&docs)?.into_iter().map(|row| Row { doc_id: None, ..row }).collect()
    } else {
        json_lines(&dir.join("corpus.jsonl"))?
    };
    Ok(join(&name, rows))
}

/// Sections become parts of one document, each under its title as a heading of the second level: one of the first
/// would be the document's title where it has a single section.
fn join(name: &str, rows: Vec<Row>) -> Vec<Input> {
    let mut inputs = Vec::new();
    let mut sections: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        match &row.doc_id {
            Some(doc_id) => sections.entry(doc_id.clone()).or_default().push(row),
            None => {
                inputs.push(Input { source: format!("{name}:{}", row.id), title: row.title, text: row.text });
            }
        }
    }
    for (doc_id, mut rows) in sections {
        rows.sort_by_key(|row| row.order);
        let text = rows.iter().fold(String::new(), |mut text, row| {
            // Writing to a string does not fail.
            let _ = write!(text, "## {}\n\n{}\n\n", row.title.trim(), row.text.trim());
            text
        });
        inputs.push(Input { title: String::new(), source: format!("{name}:{doc_id}"), text });
    }
    inputs
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    #[test]
    fn whole_documents_come_before_sections() {
        let dir = folder(&[
            ("docs.jsonl", "{\"_id\": \"a\", \"title\": \"A\", \"text\": \"whole\"}\n"),
            (
                "corpus.jsonl",
                "{\"_id\": \"a#1\", \"title\": \"one\", \"text\": \"part\", \"doc_id\": \"a\"}\n",
            ),
        ]);
        let inputs = collection(dir.path()).unwrap();
        assert_eq!(inputs.len(), 1);
        assert_eq!((inputs[0].title.as_str(), inputs[0].text.as_str()), ("A", "whole"));
        assert!(inputs[0].source.ends_with(":a"));
    }

    #[test]
    fn sections_are_joined_in_order() {
        let row = |id: u32, doc: &str, order: u32| {
            format!(
                "{{\"_id\":\"{id}\",\"title\":\"T{id}\",\"text\":\"x{id}\\n\",\"doc_id\":\"{doc}\",\"order\":{order}}}\n"
            )
        };
        let rows = [row(1, "d", 1), row(2, "e", 0), row(3, "d", 0)].concat();
        let inputs = collection(folder(&[("corpus.jsonl", &rows)]).path()).unwrap();
        let texts: Vec<&str> = inputs.iter().map(|input| input.text.as_str()).collect();
        assert_eq!(texts, ["## T3\n\nx3\n\n## T1\n\nx1\n\n", "## T2\n\nx2\n\n"]);
    }

    #[test]
    fn a_folder_without_a_corpus_is_named() {
        let dir = folder(&[]);
        let error = collection(dir.path()).unwrap_err().to_string();
        assert!(error.contains("corpus.jsonl"), "{error}");
    }
}

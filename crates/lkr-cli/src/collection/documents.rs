use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use anyhow::Result;
use lkr::CharSpan;
use serde::Deserialize;

use crate::collection::{lines::json_lines, name_of};

/// A document to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    pub(crate) title: String,
    pub(crate) source: String,
    pub(crate) text: String,
}

/// Where the sections of each document lie in its text, by the ids of documents and sections.
pub(crate) type Sections = HashMap<String, Vec<(CharSpan, String)>>;

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
    /// Its first code point in the document, and the one after its last, where there are whole documents.
    start: Option<u32>,
    end: Option<u32>,
}

/// The documents of a collection: those of `docs.jsonl` where it is there, else the rows of `corpus.jsonl`, sections
/// joined by the document that they name. A document's source is `<collection>:<id>`.
pub(crate) fn collection(dir: &Path) -> Result<Vec<Input>> {
    let name = name_of(dir)?;
    let docs = dir.join("docs.jsonl");
    let source = |id: &str| format!("{name}:{id}");
    if docs.exists() {
        let rows: Vec<Row> = json_lines(&docs)?;
        return Ok(rows.into_iter().map(|row| whole(row, source)).collect());
    }
    let (rows, sections) = split(json_lines(&dir.join("corpus.jsonl"))?);
    let joined = sections.into_iter().map(|(id, rows)| {
        let (text, _) = join(&rows);
        Input { title: String::new(), source: source(&id), text }
    });
    Ok(rows.into_iter().map(|row| whole(row, source)).chain(joined).collect())
}

/// The sections that the documents of [`collection`] are made of; none of those that are rows by themselves.
pub(crate) fn sections(dir: &Path) -> Result<Sections> {
    let rows: Vec<Row> = json_lines(&dir.join("corpus.jsonl"))?;
    if dir.join("docs.jsonl").exists() {
        let mut sections = Sections::new();
        for row in rows {
            if let (Some(doc_id), Some(start), Some(end)) = (row.doc_id, row.start, row.end) {
                sections.entry(doc_id).or_default().push((CharSpan { start, end }, row.id));
            }
        }
        return Ok(sections);
    }
    let (_, sections) = split(rows);
    Ok(sections.into_iter().map(|(id, rows)| (id, join(&rows).1)).collect())
}

fn whole(row: Row, source: impl Fn(&str) -> String) -> Input {
    Input { source: source(&row.id), title: row.title, text: row.text }
}

/// Tells the rows that are documents from those that are sections of one, by document and in order.
///
/// Rows that all have the title of the document that they name are documents too: passages that were taken out of it.
/// What a document of one row has is as the others have it.
fn split(rows: Vec<Row>) -> (Vec<Row>, BTreeMap<String, Vec<Row>>) {
    let mut sections: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    let (of_documents, mut documents): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|row| row.doc_id.is_some());
    for row in of_documents {
        sections.entry(row.doc_id.clone().unwrap_or_default()).or_default().push(row);
    }
    let mut several = sections.values().filter(|rows| rows.len() > 1).peekable();
    if several.peek().is_some() && !several.any(|rows| have_titles(rows)) {
        documents.extend(std::mem::take(&mut sections).into_values().flatten());
    }
    sections.values_mut().for_each(|rows| rows.sort_by_key(|row| row.order));
    (documents, sections)
}

/// Whether the rows of a document have titles of their own.
fn have_titles(rows: &[Row]) -> bool {
    let first = rows.first().map(|row| &row.title);
    rows.iter().any(|row| Some(&row.title) != first)
}

/// Sections become parts of one document, each under its title as a heading of the second level: one of the first
/// would be the document's title where it has a single section.
fn join(rows: &[Row]) -> (String, Vec<(CharSpan, String)>) {
    let (mut text, mut start) = (String::new(), 0);
    let mut spans = Vec::with_capacity(rows.len());
    for row in rows {
        let section = format!("## {}\n\n{}\n\n", row.title.trim(), row.text.trim());
        let end = start + u32::try_from(section.chars().count()).unwrap_or(u32::MAX - start);
        spans.push((CharSpan { start, end }, row.id.clone()));
        text.push_str(&section);
        start = end;
    }
    (text, spans)
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
    fn sections_are_where_they_were_put() {
        let row = |id: &str, title: &str, order: u32, rest: &str| {
            format!(
                "{{\"_id\":\"{id}\",\"title\":\"{title}\",\"text\":\"é{id}\",\"doc_id\":\"d\",\"order\":{order}{rest}}}\n"
            )
        };
        let rows = [row("b", "B", 1, ""), row("a", "A", 0, "")].concat();
        let dir = folder(&[("corpus.jsonl", &rows)]);
        let sections = &sections(dir.path()).unwrap()["d"];
        let text: Vec<char> = collection(dir.path()).unwrap()[0].text.chars().collect();
        let cut: Vec<String> = sections
            .iter()
            .map(|(span, _)| text[span.start as usize..span.end as usize].iter().collect())
            .collect();
        assert_eq!(cut, ["## A\n\néa\n\n", "## B\n\néb\n\n"]);
        assert_eq!(sections.iter().map(|(_, id)| id.as_str()).collect::<Vec<_>>(), ["a", "b"]);

        let rows = row("a", "A", 0, ",\"start\":3,\"end\":7");
        let whole = "{\"_id\": \"d\", \"title\": \"D\", \"text\": \"whole text\"}\n";
        let dir = folder(&[("corpus.jsonl", &rows), ("docs.jsonl", whole)]);
        let expected = vec![(CharSpan { start: 3, end: 7 }, "a".to_owned())];
        assert_eq!(super::sections(dir.path()).unwrap(), HashMap::from([("d".to_owned(), expected)]));
    }

    #[test]
    fn passages_under_one_title_are_documents() {
        let row = |id: u32, doc: &str| {
            format!(
                "{{\"_id\":\"{id}\",\"title\":\"{doc}\",\"text\":\"x\",\"doc_id\":\"{doc}\",\"order\":{id}}}\n"
            )
        };
        let rows = [row(1, "d"), row(2, "d"), row(3, "e"), row(4, "e"), row(5, "alone")].concat();
        let dir = folder(&[("corpus.jsonl", &rows)]);
        let inputs = collection(dir.path()).unwrap();
        assert_eq!((inputs.len(), inputs[1].title.as_str(), inputs[1].text.as_str()), (5, "d", "x"));
        assert!(sections(dir.path()).unwrap().is_empty());
    }

    #[test]
    fn a_folder_without_a_corpus_is_named() {
        let dir = folder(&[]);
        let error = collection(dir.path()).unwrap_err().to_string();
        assert!(error.contains("corpus.jsonl"), "{error}");
    }
}

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result, bail};
use lkr::CharSpan;
use serde::Deserialize;

use crate::collection::{
    documents::{Sections, sections},
    lines::{json_lines, read},
};

/// The queries of a collection and what answers them.
#[derive(Debug)]
pub(crate) struct Gold {
    /// Those that have a judgement, in their order.
    pub(crate) queries: Vec<Query>,
    /// Where the sections lie that passages are judged by.
    pub(crate) sections: Sections,
}

/// A query and what was judged for it, by ids in the collection. What is not there has no gain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) id: String,
    pub(crate) text: String,
    /// The gain of each document.
    pub(crate) documents: HashMap<String, f64>,
    /// The gain of each section.
    pub(crate) passages: HashMap<String, f64>,
    /// The spans that hold the answer, by document.
    pub(crate) spans: HashMap<String, Vec<CharSpan>>,
}

#[derive(Debug, Deserialize)]
struct QueryRow {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// A row of `spans.jsonl` or `evidence.jsonl`.
#[derive(Debug, Deserialize)]
struct SpanRow {
    query_id: String,
    #[serde(alias = "passage_id")]
    doc_id: String,
    start: Option<u32>,
    end: Option<u32>,
    #[serde(default)]
    spans: Vec<(u32, u32)>,
}

#[derive(Debug, PartialEq)]
struct Judgement {
    query: String,
    item: String,
    gain: f64,
}

type Gains = HashMap<String, HashMap<String, f64>>;

impl Gold {
    /// Reads `queries.jsonl`, and `qrels.tsv` with the judged documents or sections. Where there is `qrels_docs.tsv`, it
    /// judges the documents; else a judged section stands for its document, and of several of one document the best
    /// counts. Judged spans are those of `spans.jsonl` and `evidence.jsonl`.
    ///
    /// A `split` is another set of queries over the same documents: `queries_<split>.jsonl`, `qrels_<split>.tsv`.
    pub(crate) fn read(dir: &Path, split: Option<&str>) -> Result<Self> {
        let suffix = split.map(|split| format!("_{split}")).unwrap_or_default();
        let rows: Vec<QueryRow> = json_lines(&dir.join(format!("queries{suffix}.jsonl")))?;
        let sections = if dir.join("corpus.jsonl").exists() { sections(dir)? } else { Sections::new() };
        let (of_docs, of_rows) =
            (dir.join(format!("qrels_docs{suffix}.tsv")), dir.join(format!("qrels{suffix}.tsv")));
        let (mut documents, mut passages) = (Gains::new(), Gains::new());
        if of_rows.exists() || !of_docs.exists() {
            (documents, passages) = gains(&of_rows, &sections)?;
        }
        if of_docs.exists() {
            (documents, _) = gains(&of_docs, &Sections::new())?;
        }
        let mut spans = spans(dir)?;
        let judged = |QueryRow { id, text }: QueryRow| {
            let documents = documents.remove(&id).unwrap_or_default();
            let passages = passages.remove(&id).unwrap_or_default();
            let spans = spans.remove(&id).unwrap_or_default();
            (!documents.is_empty()).then_some(Query { id, text, documents, passages, spans })
        };
        let queries: Vec<Query> = rows.into_iter().filter_map(judged).collect();
        if queries.is_empty() {
            bail!("no query of {} has a judgement", dir.display());
        }
        Ok(Self { queries, sections })
    }
}

/// The gains of documents and of sections, by query.
fn gains(path: &Path, sections: &Sections) -> Result<(Gains, Gains)> {
    let of_section = |(doc, sections): (&String, &Vec<(CharSpan, String)>)| {
        sections.iter().map(|(_, id)| (id.clone(), doc.clone())).collect::<Vec<_>>()
    };
    let document_of: HashMap<String, String> = sections.iter().flat_map(of_section).collect();
    let (mut documents, mut passages) = (Gains::new(), Gains::new());
    for Judgement { query, item, gain } in judgements(path)? {
        let document = document_of.get(&item);
        let best = documents.entry(query.clone()).or_default();
        let best = best.entry(document.unwrap_or(&item).clone()).or_default();
        *best = best.max(gain);
        if document.is_some() {
            passages.entry(query).or_default().insert(item, gain);
        }
    }
    Ok((documents, passages))
}

/// The judged spans by query and document.
fn spans(dir: &Path) -> Result<HashMap<String, HashMap<String, Vec<CharSpan>>>> {
    let mut found: HashMap<String, HashMap<String, Vec<CharSpan>>> = HashMap::new();
    for file in ["spans.jsonl", "evidence.jsonl"] {
        let path = dir.join(file);
        if !path.exists() {
            continue;
        }
        for SpanRow { query_id, doc_id, start, end, spans } in json_lines(&path)? {
            let own = start.zip(end).into_iter().chain(spans);
            let of_doc = found.entry(query_id).or_default().entry(doc_id).or_default();
            of_doc.extend(own.map(|(start, end)| CharSpan { start, end }));
        }
    }
    Ok(found)
}

fn judgements(path: &Path) -> Result<Vec<Judgement>> {
    Ok(read(path, judgement)?.into_iter().flatten().collect())
}

/// `query-id`, `corpus-id` and `score`, tabs between; nothing where it is the header.
fn judgement(line: &str) -> Result<Option<Judgement>> {
    let mut fields = line.split('\t').map(str::trim);
    let (query, item, score) = (fields.next(), fields.next(), fields.next());
    let (Some(query), Some(item), Some(score)) = (query, item, score) else {
        bail!("three columns are needed: query-id, corpus-id, score");
    };
    if score == "score" {
        return Ok(None);
    }
    let gain: Option<f64> = score.parse().ok().filter(|gain: &f64| gain.is_finite());
    let gain = gain.with_context(|| format!("{score} is no score"))?;
    Ok(Some(Judgement { query: query.to_owned(), item: item.to_owned(), gain }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn sections_stand_for_their_documents() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        put("queries.jsonl", "{\"_id\":\"q\",\"text\":\"what\"}\n{\"_id\":\"r\",\"text\":\"unjudged\"}\n");
        put("qrels.tsv", "query-id\tcorpus-id\tscore\nq\ta#0\t1\nq\ta#1\t2\nq\tb\t1\n");
        let row =
            |id: &str, rest: &str| format!("{{\"_id\":\"{id}\",\"title\":\"{id}\",\"text\":\"x\"{rest}}}\n");
        let sections = [row("a#0", ",\"doc_id\":\"a\""), row("a#1", ",\"doc_id\":\"a\"")];
        put("corpus.jsonl", &[sections.concat(), row("b", "")].concat());
        let gold = Gold::read(dir.path(), None).unwrap();
        assert_eq!(gold.queries.len(), 1);
        let gains = |gains: &[(&str, f64)]| gains.iter().map(|&(id, gain)| (id.to_owned(), gain)).collect();
        let query = &gold.queries[0];
        assert_eq!(query.documents, gains(&[("a", 2.0), ("b", 1.0)]));
        assert_eq!(query.passages, gains(&[("a#0", 1.0), ("a#1", 2.0)]));

        put("queries_train.jsonl", "{\"_id\":\"t\",\"text\":\"how\"}\n");
        put("qrels_train.tsv", "t\tb\t1\n");
        put("spans.jsonl", "{\"query_id\":\"t\",\"passage_id\":\"b\",\"start\":1,\"end\":3}\n");
        put("evidence.jsonl", "{\"query_id\":\"t\",\"doc_id\":\"b\",\"spans\":[[4,5]]}\n");
        let train = Gold::read(dir.path(), Some("train")).unwrap();
        let spans = [CharSpan { start: 1, end: 3 }, CharSpan { start: 4, end: 5 }];
        assert_eq!(train.queries[0].spans["b"], spans);
        assert_eq!((train.queries.len(), train.queries[0].passages.len()), (1, 0));

        put("qrels_docs.tsv", "query-id\tcorpus-id\tscore\nr\tb\t1\n");
        let gold = Gold::read(dir.path(), None).unwrap();
        assert_eq!((gold.queries[0].id.as_str(), gold.queries[0].text.as_str()), ("r", "unjudged"));
    }

    #[test]
    fn bad_judgements_are_named() {
        assert!(judgement("q\td").unwrap_err().to_string().contains("three columns"));
        assert!(judgement("q\td\tinf").unwrap_err().to_string().contains("inf is no score"));
    }
}

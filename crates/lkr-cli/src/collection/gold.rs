use std::{
    collections::{BTreeSet, HashMap, HashSet},
    path::Path,
};

use anyhow::{Context, Result, bail};
use lkr::CharSpan;
use serde::Deserialize;

use crate::collection::{
    documents::{Sections, sections},
    lines::{json_lines, parse_lines},
};

/// The queries of a collection and their judgements.
#[derive(Debug)]
pub(crate) struct Gold {
    /// The queries that have a judgement, in order.
    pub(crate) queries: Vec<Query>,
    /// The spans of the judged sections.
    pub(crate) sections: Sections,
}

/// A query with its judgements, by ids of the collection. Items without a judgement have no gain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) id: String,
    pub(crate) text: String,
    /// The gain of each document.
    pub(crate) documents: HashMap<String, f64>,
    /// The gain of each section.
    pub(crate) passages: HashMap<String, f64>,
    /// The spans that contain the answer, by document.
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
    /// Reads `queries.jsonl`, and `qrels.tsv` with the judged documents or sections. If there is a `qrels_docs.tsv`, it
    /// judges the documents. Otherwise a judged section counts for its document, with the best gain if there are
    /// several. Judged spans come from `spans.jsonl` and `evidence.jsonl`.
    ///
    /// A `split` is another set of queries over the same documents, in `queries_<split>.jsonl` and `qrels_<split>.tsv`.
    pub(crate) fn read(dir: &Path, split: Option<&str>) -> Result<Self> {
        let suffix = split.map(|split| format!("_{split}")).unwrap_or_default();
        let rows: Vec<QueryRow> = json_lines(&dir.join(format!("queries{suffix}.jsonl")))?;
        let sections = if dir.join("corpus.jsonl").exists() { sections(dir)? } else { Sections::new() };
        let (doc_qrels, row_qrels) =
            (dir.join(format!("qrels_docs{suffix}.tsv")), dir.join(format!("qrels{suffix}.tsv")));
        let (mut documents, mut passages) = (Gains::new(), Gains::new());
        if row_qrels.exists() || !doc_qrels.exists() {
            (documents, passages) = gains(&row_qrels, &sections)?;
        }
        if doc_qrels.exists() {
            (documents, _) = gains(&doc_qrels, &Sections::new())?;
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

    /// The judged documents that are not among `ids`, in order, and the number of all judged ones.
    pub(crate) fn unknown_documents(&self, ids: &HashSet<&str>) -> (BTreeSet<&str>, usize) {
        let judged = self.queries.iter().flat_map(|query| query.documents.keys().map(String::as_str));
        let judged: BTreeSet<&str> = judged.collect();
        let count = judged.len();
        (judged.into_iter().filter(|id| !ids.contains(id)).collect(), count)
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
            let row_spans = start.zip(end).into_iter().chain(spans);
            let of_doc = found.entry(query_id).or_default().entry(doc_id).or_default();
            of_doc.extend(row_spans.map(|(start, end)| CharSpan { start, end }));
        }
    }
    Ok(found)
}

fn judgements(path: &Path) -> Result<Vec<Judgement>> {
    Ok(parse_lines(path, judgement)?.into_iter().flatten().collect())
}

/// Parses `query-id`, `corpus-id` and `score`, separated by tabs; `None` for the header.
fn judgement(line: &str) -> Result<Option<Judgement>> {
    let mut fields = line.split('\t').map(str::trim);
    let (query, item, score) = (fields.next(), fields.next(), fields.next());
    let (Some(query), Some(item), Some(score)) = (query, item, score) else {
        bail!("expected three columns: query-id, corpus-id, score");
    };
    if score == "score" {
        return Ok(None);
    }
    let gain: Option<f64> = score.parse().ok().filter(|gain: &f64| gain.is_finite());
    let gain = gain.with_context(|| format!("{score} is not a score"))?;
    Ok(Some(Judgement { query: query.to_owned(), item: item.to_owned(), gain }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn judged_sections_count_for_their_documents() {
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
        assert_eq!(gold.unknown_documents(&HashSet::from(["c", "b"])), (BTreeSet::from(["a"]), 2));

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
    fn invalid_judgement_is_named_in_the_error() {
        assert!(judgement("q\td").unwrap_err().to_string().contains("three columns"));
        assert!(judgement("q\td\tinf").unwrap_err().to_string().contains("inf is not a score"));
    }
}

use std::{collections::HashMap, path::Path};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::collection::lines::{json_lines, read};

/// The queries of a collection and the documents that answer them.
#[derive(Debug)]
pub(crate) struct Gold {
    /// Those that have a judgement, in their order.
    pub(crate) queries: Vec<Query>,
}

/// A query and how relevant each judged document is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Query {
    pub(crate) id: String,
    pub(crate) text: String,
    /// The gain of each document, by its id in the collection. Documents that are not there have none.
    pub(crate) gains: HashMap<String, f64>,
}

#[derive(Debug, Deserialize)]
struct QueryRow {
    #[serde(rename = "_id")]
    id: String,
    text: String,
}

/// A row of `corpus.jsonl`, as far as it tells which document it belongs to.
#[derive(Debug, Deserialize)]
struct Section {
    #[serde(rename = "_id")]
    id: String,
    doc_id: Option<String>,
}

#[derive(Debug, PartialEq)]
struct Judgement {
    query: String,
    item: String,
    gain: f64,
}

impl Gold {
    /// Reads `queries.jsonl` with `qrels_docs.tsv`, or `qrels.tsv` where that is not there. A judged section stands
    /// for its document; of several sections of one document the best counts.
    pub(crate) fn read(dir: &Path) -> Result<Self> {
        let rows: Vec<QueryRow> = json_lines(&dir.join("queries.jsonl"))?;
        let of_docs = dir.join("qrels_docs.tsv");
        let (judgements, document_of) = if of_docs.exists() {
            (judgements(&of_docs)?, HashMap::new())
        } else {
            (judgements(&dir.join("qrels.tsv"))?, sections(dir)?)
        };
        let mut gains: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for Judgement { query, item, gain } in judgements {
            let document = document_of.get(&item).cloned().unwrap_or(item);
            let best = gains.entry(query).or_default().entry(document).or_default();
            *best = best.max(gain);
        }
        let judged = |row: QueryRow| {
            let gains = gains.remove(&row.id)?;
            Some(Query { id: row.id, text: row.text, gains })
        };
        let queries: Vec<Query> = rows.into_iter().filter_map(judged).collect();
        if queries.is_empty() {
            bail!("no query of {} has a judgement", dir.display());
        }
        Ok(Self { queries })
    }
}

/// The documents that sections belong to, by the sections' ids.
fn sections(dir: &Path) -> Result<HashMap<String, String>> {
    let rows: Vec<Section> = json_lines(&dir.join("corpus.jsonl"))?;
    Ok(rows.into_iter().filter_map(|row| Some((row.id, row.doc_id?))).collect())
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
        put(
            "corpus.jsonl",
            "{\"_id\":\"a#0\",\"doc_id\":\"a\"}\n{\"_id\":\"a#1\",\"doc_id\":\"a\"}\n{\"_id\":\"b\"}\n",
        );
        let gold = Gold::read(dir.path()).unwrap();
        assert_eq!(gold.queries.len(), 1);
        assert_eq!(gold.queries[0].gains, HashMap::from([("a".to_owned(), 2.0), ("b".to_owned(), 1.0)]));

        put("qrels_docs.tsv", "query-id\tcorpus-id\tscore\nr\tb\t1\n");
        let gold = Gold::read(dir.path()).unwrap();
        assert_eq!((gold.queries[0].id.as_str(), gold.queries[0].text.as_str()), ("r", "unjudged"));
    }

    #[test]
    fn bad_judgements_are_named() {
        assert!(judgement("q\td").unwrap_err().to_string().contains("three columns"));
        assert!(judgement("q\td\tinf").unwrap_err().to_string().contains("inf is no score"));
    }
}

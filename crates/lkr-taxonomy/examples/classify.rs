//! Classifies a collection: `classify FOLDER_OR_FILE [LIMIT] [MODEL_DIR]`.
//!
//! The folder holds `docs.jsonl` or `corpus.jsonl`, lines of `{_id, title, text}`; entries of one `doc_id` in a row
//! are sections of one document. For each document it prints its three best categories with their scores, and `-`
//! before those that get none.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fs};

use anyhow::{Context, Result};
use lkr_layers::{LayerOptions, indexed_chunk, layer};
use lkr_models::{EmbedKind, Embedder};
use lkr_models_local::{LocalEmbedder, LocalOptions};
use lkr_parsers::{Markdown, Parser, Source};
use lkr_taxonomy::{Classifier, ClassifierInput, SimilarityClassifier, SimilarityOptions, Taxonomy};
use serde::Deserialize;

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/all-MiniLM-L6-v2");

#[derive(Debug, Deserialize)]
struct Entry {
    #[serde(rename = "_id")]
    id: String,
    #[serde(default)]
    title: String,
    text: String,
    doc_id: Option<String>,
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let path = args.first().context("usage: classify FOLDER_OR_FILE [LIMIT] [MODEL_DIR]")?;
    let limit = args.get(1).map_or(Ok(usize::MAX), |limit| limit.parse())?;
    let model = Path::new(args.get(2).map_or(MODEL, String::as_str));
    let embedder: Arc<dyn Embedder> = Arc::new(LocalEmbedder::open(model, LocalOptions::default())?);
    let classifier =
        SimilarityClassifier::new(Taxonomy::built_in(), embedder.clone(), SimilarityOptions::default());
    let (mut count, mut found) = (0, 0);
    for entry in documents(Path::new(path))?.into_iter().take(limit) {
        let Some(vector) = vector(&*embedder, &entry).await? else { continue };
        let best = classifier.rank(&vector).await?;
        let input = ClassifierInput {
            title: &entry.title,
            summary: "",
            keywords: &[],
            vector: Some(&vector),
            model: None,
        };
        let classification = classifier.classify(&input).await?.classification;
        count += 1;
        found += usize::from(classification.is_some());
        let best: Vec<_> =
            best.iter().take(3).map(|best| format!("{} {:.2}", best.name, best.score)).collect();
        let mark = if classification.is_some() { ' ' } else { '-' };
        say(format_args!("{mark} {}: {}", entry.id, best.join(" | ")));
    }
    say(format_args!("{found} of {count} documents have a category"));
    Ok(())
}

fn documents(path: &Path) -> Result<Vec<Entry>> {
    let path = if path.is_dir() {
        let files: [PathBuf; 2] = [path.join("docs.jsonl"), path.join("corpus.jsonl")];
        files.into_iter().find(|file| file.exists()).context("neither docs.jsonl nor corpus.jsonl")?
    } else {
        path.to_owned()
    };
    let mut documents: Vec<Entry> = Vec::new();
    for line in fs::read_to_string(path)?.lines() {
        let mut entry: Entry = serde_json::from_str(line)?;
        let Some(doc_id) = &entry.doc_id else {
            documents.push(entry);
            continue;
        };
        let section = format!("## {}\n{}\n\n", entry.title, entry.text);
        match documents.last_mut().filter(|last| last.id == *doc_id) {
            Some(last) => last.text.push_str(&section),
            None => {
                entry.id = doc_id.clone();
                entry.title = doc_id.rsplit('/').next().unwrap_or_default().replace('-', " ");
                entry.text = section;
                documents.push(entry);
            }
        }
    }
    Ok(documents)
}

/// The document's vector as the service makes it: the mean of its chunks', title and headings before each.
async fn vector(embedder: &dyn Embedder, entry: &Entry) -> Result<Option<Vec<f32>>> {
    let parsed = Markdown.parse(&Source::from(entry.text.as_str()))?;
    let layered = layer(&parsed, &entry.title, &LayerOptions::default());
    let title = &layered.root.indexed_title;
    let chunks = layered.chunks.iter().map(|chunk| indexed_chunk(title, chunk));
    let texts: Vec<String> = chunks.collect();
    let vectors = embedder.embed(EmbedKind::Passage, &texts).await?;
    let sum = vectors.into_iter().reduce(|sum, next| sum.iter().zip(&next).map(|(a, b)| a + b).collect());
    Ok(sum.map(|sum| {
        let length = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        sum.iter().map(|value| value / length).collect()
    }))
}

/// Prints a line; that the reader went away is no failure.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

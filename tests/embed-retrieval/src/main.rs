//! Indexes two texts in memory and searches them, with `lkr-retrieval` alone: no server, no model, no file.

use std::{error::Error, sync::Arc};

use lkr_retrieval::{
    MemoryCache, SearchOptions, SearchRequest, Searcher,
    catalog::{Acceptance, Catalog, Task, TaskInput, points_of, tags_of},
    domain::{Block, BlockKind, Counts, DocId, Document, Layer, Metadata, Parsed, SpaceName, SystemClock},
    layers::{LayerOptions, indexed_text, layer},
    models::{SparseEncoder, average_terms},
    state::MemoryState,
    vectors::{Collection, CollectionSpec, MemoryVectors, VectorStore},
};
use time::OffsetDateTime;

const TEXTS: [(&str, &str); 2] = [
    ("Moons", "Europa hides a salty ocean under a crust of ice. Io is covered by volcanoes."),
    ("Bread", "Knead the dough for ten minutes. Let it rise under a cloth until it has doubled."),
];

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let vectors = Arc::new(MemoryVectors::new());
    let catalog = Catalog::new(Arc::new(MemoryState::new()));
    make_collections(&*vectors).await?;
    for (title, text) in TEXTS {
        index(&*vectors, &catalog, title, text).await?;
    }
    let cache = Arc::new(MemoryCache::default());
    let searcher = Searcher::new(vectors, catalog, None, cache, SearchOptions::default());
    let request = SearchRequest { summarize: true, ..SearchRequest::new("Where is an ocean under ice?") };
    let response = searcher.search(&request).await?.response;
    for result in &response.results {
        println!("{:.4}  {}: {}", result.score, result.title, result.text);
    }
    println!("summary: {}", response.summary.as_ref().map_or("", |summary| summary.text.as_str()));
    println!("warnings: {}", response.warnings.join("; "));
    match response.results.first() {
        Some(best) if best.title == "Moons" => Ok(()),
        other => Err(format!("expected the text about moons first, found {other:?}").into()),
    }
}

async fn make_collections(vectors: &dyn VectorStore) -> Result<(), Box<dyn Error>> {
    for layer in Layer::ALL {
        let collection = Collection::new(format!("{layer}.sparse")).ok_or("not a collection name")?;
        vectors.ensure(&CollectionSpec { collection: collection.clone(), dense: None }).await?;
        vectors.switch(&[(layer.into(), collection)]).await?;
    }
    Ok(())
}

/// Indexes one text: layers, points with their sparse vectors, and last the record that makes them visible.
async fn index(
    vectors: &dyn VectorStore,
    catalog: &Catalog,
    title: &str,
    text: &str,
) -> Result<(), Box<dyn Error>> {
    let paragraph = Block { kind: BlockKind::Paragraph, range: 0..text.len(), page: None, furniture: false };
    let parsed = Parsed { text: text.to_owned(), blocks: vec![paragraph], warnings: Vec::new() };
    let layered = layer(&parsed, title, &LayerOptions::default());
    let input = TaskInput {
        revision: 1,
        title: title.to_owned(),
        source: String::new(),
        metadata: Metadata::new(),
        warnings: Vec::new(),
        ..TaskInput::default()
    };
    let task = Task::ingest(&SystemClock, DocId::new(), SpaceName::default(), "example".into(), input);
    let now = OffsetDateTime::now_utc();
    let document = Document {
        doc_id: task.doc_id()?,
        space: SpaceName::default(),
        revision: 1,
        title: layered.root.title.clone(),
        source: String::new(),
        summary: layered.root.summary.clone(),
        keywords: layered.root.keywords.clone(),
        category: String::new(),
        language: layered.root.language.clone(),
        metadata: Metadata::new(),
        counts: Counts { l1: 1, l2: 1, l3: 1, chunks: 1 },
        char_count: layered.root.char_count,
        content_sha256: String::new(),
        created_at: now,
        updated_at: now,
        created_by: task.created_by.clone(),
        category_by_hand: false,
        original: None,
        fingerprint: None,
    };
    let sparse = SparseEncoder::default();
    for source in points_of(&document, &layered) {
        // Each of these texts is short enough to be one section, one passage and one chunk.
        let indexed = indexed_text(&layered.root.indexed_title, &[], text);
        let words = sparse.passage(&indexed, None, average_terms(source.layer));
        let collection = Collection::from(source.layer);
        vectors.upsert(&collection, vec![source.point(&tags_of(&document), words, None)]).await?;
    }
    catalog.accept(&[Acceptance { task: task.clone(), existing: None }], Vec::new()).await?;
    let document_state = catalog.document_state(task.doc_id()?).await?;
    Ok(catalog.publish(&document_state, &document, &task, false, Vec::new()).await?)
}

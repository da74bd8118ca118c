//! Measures filters over values: `filters [DOCUMENTS] [CHUNKS]`, by default 10,000 documents of 10 chunks.
//!
//! Each document has the tags of a stored upload. Printed are the bytes of the store for each chunk, and the
//! milliseconds that filters take which one in ten, one in a hundred and one in a thousand documents pass.

use std::{env, fs, path::Path, time::Instant};

use lkr_domain::{DocId, FilterExpr, PointId, SparseVector};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, LmdbVectors};
use lkr_vectors::{Collection, CollectionSpec, Filter, Point, PointOrigin, Tags, VectorStore};
use serde_json::{Value, json};

type Error = Box<dyn std::error::Error>;

const ROUNDS: usize = 20;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args = env::args().skip(1).map(|arg| arg.parse()).collect::<Result<Vec<u32>, _>>()?;
    let documents = args.first().copied().unwrap_or(10_000);
    let chunks = args.get(1).copied().unwrap_or(10);
    let folder = tempfile::tempdir()?;
    let store = LmdbStore::open(folder.path(), LmdbOptions::default())?;
    let vectors = store.vectors();
    let name = Collection::new("filters").ok_or("no name")?;
    vectors.ensure(&CollectionSpec { collection: name.clone(), dense: None }).await?;
    let started = Instant::now();
    for first in (0..documents).step_by(50) {
        let points = (first..documents.min(first + 50)).flat_map(|doc| document(doc, chunks)).collect();
        vectors.upsert(&name, points).await?;
    }
    let points = f64::from(documents * chunks);
    print_line(&format!(
        "{documents} documents, {points} chunks, added in {:.1} s",
        started.elapsed().as_secs_f64()
    ));
    print_line(&format!("{:.0} bytes a chunk", size(&folder.path().join("kb"))? as f64 / points));
    for (what, json) in filters(documents) {
        measure(&vectors, &name, &what, &json).await?;
    }
    Ok(())
}

/// The chunks of a document: 100 terms and 800 bytes of payload each.
fn document(doc: u32, chunks: u32) -> impl Iterator<Item = Point> {
    let id = |n: u32| u128::from(n).to_be_bytes();
    let mut doc_id = id(doc);
    doc_id[0] = 1;
    let tags = tags(doc);
    (0..chunks).map(move |ordinal| Point {
        id: PointId::from_bytes(id(doc * chunks + ordinal)),
        origin: PointOrigin { doc_id: DocId::from_bytes(doc_id), revision: 1, ordinal, l2: None, l3: None },
        tags: tags.clone(),
        dense: None,
        sparse: SparseVector::from_pairs((0..100).map(|n| ((doc * 31 + ordinal * 7 + n * n) % 50_000, 1.5))),
        payload: Value::from("x".repeat(800)),
    })
}

fn tags(doc: u32) -> Tags {
    let pairs = [
        ("doc_id", format!("{doc:032x}")),
        ("title", format!("Quarterly report number {doc} of the company")),
        ("source", format!("https://example.com/reports/{doc}.pdf")),
        ("category", if doc.is_multiple_of(3) { "law" } else { "finance" }.to_owned()),
        ("language", "en".to_owned()),
        ("space", "default".to_owned()),
        ("created_by", "alice".to_owned()),
        ("created_at", format!("2026-01-{:02}T{:02}:{:02}:00.{doc:06}Z", doc % 28 + 1, doc % 24, doc % 60)),
        ("updated_at", format!("2026-02-{:02}T{:02}:{:02}:00.{doc:06}Z", doc % 28 + 1, doc % 24, doc % 60)),
        ("content_type", "application/pdf".to_owned()),
        ("metadata.number", doc.to_string()),
        ("metadata.raw_file_path", format!("2026/01/{doc:032x}_report-{doc}.pdf")),
        ("metadata.original_filename", format!("report-{doc}.pdf")),
        ("metadata.original_size_bytes", (doc * 37).to_string()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value)).into()
}

fn filters(documents: u32) -> Vec<(String, Value)> {
    let mut filters = vec![
        ("equal category".to_owned(), json!({"field": "category", "eq": "law"})),
        ("exists".to_owned(), json!({"field": "title", "exists": true})),
        ("all by a range".to_owned(), json!({"field": "metadata.number", "gte": 0})),
        ("prefix of all".to_owned(), json!({"field": "source", "prefix": "https://"})),
    ];
    for of in [10, 100, 1_000] {
        let share = f64::from(documents / of);
        let number = |op: &str| json!({"field": "metadata.number", op: share});
        filters.push((format!("number, one in {of}"), number("lt")));
        filters.push((format!("not number, all but one in {of}"), json!({"not": number("lt")})));
        let values: Vec<u32> = (0..documents / of).map(|n| n * of).take(1_000).collect();
        filters.push((format!("in, one in {of}"), json!({"field": "metadata.number", "in": values})));
    }
    for (what, lt) in [("one in 9", "2026-01-04"), ("one in 28", "2026-01-02")] {
        filters.push((format!("created_at, {what}"), json!({"field": "created_at", "lt": lt})));
    }
    filters.push(("text, one in 9".to_owned(), json!({"field": "metadata.number", "gte": "1", "lt": "2"})));
    filters
}

async fn measure(vectors: &LmdbVectors, name: &Collection, what: &str, json: &Value) -> Result<(), Error> {
    let filter = Filter::from(&FilterExpr::parse("where", json)?);
    let mut times = Vec::new();
    let mut count = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        count = vectors.count(name, &filter).await?;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
    print_line(&format!("  {what:32} {count:7} chunks   {median:.2} ms"));
    Ok(())
}

fn size(folder: &Path) -> Result<u64, Error> {
    let files = fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    files.sum()
}

#[expect(clippy::print_stdout, reason = "an example prints its results")]
fn print_line(line: &str) {
    println!("{line}");
}

//! The disk space of a knowledge base, its growth under churn, and what deletions give back.

use std::{
    collections::{HashMap, HashSet},
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use lkr::{DocId, Document, Scope, ports::Embedder};

use crate::{
    bench::{
        copies::CopyEmbedder,
        idle::wait_until_background_work_is_done,
        ingest::ingest_all,
        material::{Material, read_documents},
        random::XorShift64,
    },
    collection::Input,
    local_kb::LocalKnowledgeBase,
};

/// The arguments of `lkr bench disk`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Create the knowledge base in this folder, which must be empty or missing. Before each measurement at rest, the store has 40
    /// seconds to pack its pages.
    #[arg(long, value_name = "FOLDER")]
    data_dir: PathBuf,
    #[command(flatten)]
    material: Material,
    /// Delete documents by lot and add them again, this many times as many as there are.
    #[arg(long, value_name = "N", default_value_t = 10)]
    churn: usize,
}

/// The parts of a data folder.
const PARTS: [&str; 3] = ["store/kb", "store/clusters", "blobs"];

/// One document in this many stays when the others are deleted.
const KEPT: usize = 10;

/// Within this time, the store packs pages and gives free space back. It looks for each every ten seconds.
const AT_REST_AFTER: Duration = Duration::from_secs(40);

/// The unit of `st_blocks`.
const BLOCK: u64 = 512;

/// The size of a number of a vector, in bytes.
const NUMBER: u64 = 4;

/// The space that a knowledge base takes.
#[derive(Debug)]
pub(super) struct DiskReport {
    documents: usize,
    chunks: u64,
    /// How many vectors there are, of all layers, and their dimensions.
    vectors: (u64, u64),
    /// The allocated bytes of each part: at rest before the churn, right after it, and at rest.
    before: [u64; PARTS.len()],
    after: [u64; PARTS.len()],
    at_rest: [u64; PARTS.len()],
    churn: usize,
    /// The allocated bytes with a tenth of the documents, and how many chunks these have.
    left: [u64; PARTS.len()],
    chunks_left: u64,
}

/// Ingests a collection, replaces its documents by lot, and deletes most of them.
pub(super) async fn measure(args: &Args) -> Result<DiskReport> {
    let inputs = read_documents(&args.material.dir, None)?;
    let documents = inputs.len();
    let distinct = |of: fn(&Input) -> &str| inputs.iter().map(of).collect::<HashSet<_>>().len() == documents;
    ensure!(
        distinct(|input| &input.source) && distinct(|input| &input.text),
        "several documents of {} have one source or one text",
        args.material.dir.display()
    );
    // Texts that come back are not embedded again.
    let embedder: Arc<dyn Embedder> = Arc::new(CopyEmbedder::new(args.material.embedder()?));
    let dims = embedder.profile().dims as u64;
    let LocalKnowledgeBase { kb, .. } = LocalKnowledgeBase::create(&args.data_dir, Some(embedder)).await?;
    let added = ingest_all(&kb, inputs.clone()).await?;
    let mut inputs: HashMap<String, Input> =
        inputs.into_iter().map(|input| (input.source.clone(), input)).collect();
    let with_input = |document: Document| Some((document.doc_id, inputs.remove(&document.source)?));
    let mut stored: Vec<(DocId, Input)> = added.into_iter().filter_map(with_input).collect();
    ensure!(stored.len() == documents, "several documents have one text, but for white space");
    let before = parts_at_rest(&args.data_dir).await?;
    let counts = kb.stats(&Scope::All).await?.counts;
    let mut random = XorShift64::new(0x9e37_79b9_7f4a_7c15);
    for _ in 0..args.churn * documents {
        let at = random.next() as usize % documents;
        let (doc_id, input) = stored.get_mut(at).context("a document")?;
        kb.delete(*doc_id).await?;
        let added = ingest_all(&kb, vec![input.clone()]).await?;
        *doc_id = added.first().context("an added document")?.doc_id;
    }
    wait_until_background_work_is_done().await;
    let after = parts(&args.data_dir)?;
    let at_rest = parts_at_rest(&args.data_dir).await?;
    for (doc_id, _) in stored.iter().skip(documents.div_ceil(KEPT)) {
        kb.delete(*doc_id).await?;
    }
    let left = parts_at_rest(&args.data_dir).await?;
    let chunks_left = kb.stats(&Scope::All).await?.counts.chunks;
    kb.close().await;
    let vectors = counts.l1 + counts.l2 + counts.l3 + counts.chunks;
    Ok(DiskReport {
        documents,
        chunks: counts.chunks,
        vectors: (vectors, dims),
        before,
        after,
        at_rest,
        churn: args.churn,
        left,
        chunks_left,
    })
}

/// The allocated bytes of each part once the store has packed its pages and given free space back.
async fn parts_at_rest(data_dir: &Path) -> Result<[u64; PARTS.len()]> {
    tokio::time::sleep(AT_REST_AFTER).await;
    wait_until_background_work_is_done().await;
    parts(data_dir)
}

/// The allocated bytes of each part.
pub(super) fn parts(data_dir: &Path) -> Result<[u64; PARTS.len()]> {
    let mut sizes = [0; PARTS.len()];
    for (size, part) in sizes.iter_mut().zip(PARTS) {
        let part = data_dir.join(part);
        *size = allocated(&part).with_context(|| format!("read {}", part.display()))?;
    }
    Ok(sizes)
}

/// The bytes that the files of a folder take; 0 if there is none.
fn allocated(folder: &Path) -> io::Result<u64> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        bytes += match entry.file_type()?.is_dir() {
            true => allocated(&entry.path())?,
            false => entry.metadata()?.blocks() * BLOCK,
        };
    }
    Ok(bytes)
}

impl fmt::Display for DiskReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { documents, chunks, vectors: (vectors, dims), before, after, at_rest, .. } = self;
        let Self { churn, left, chunks_left, .. } = self;
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let kb_a_chunk = |bytes: u64| bytes as f64 / 1e3 / (*chunks).max(1) as f64;
        let raw = vectors * dims * NUMBER;
        writeln!(f, "base     {documents} documents, {chunks} chunks")?;
        writeln!(f, "vectors  {vectors} of {dims} numbers: {:.1} MB", mb(raw))?;
        for (when, sizes) in [("before", before), ("after", after), ("at rest", at_rest)] {
            let [store, clusters, texts] = *sizes;
            let all = store + clusters + texts;
            writeln!(
                f,
                "{when:7}  store {:.1} MB, clusters {:.1} MB, texts {:.1} MB: {:.2} kB a chunk, {:.2} times the vectors",
                mb(store),
                mb(clusters),
                mb(texts),
                kb_a_chunk(all),
                all as f64 / raw.max(1) as f64
            )?;
        }
        let ratio = |sizes: &[u64; PARTS.len()]| sizes.iter().sum::<u64>().max(1) as f64;
        writeln!(
            f,
            "churn    {churn} times the base: {:.2} times as large, {:.2} at rest",
            ratio(after) / ratio(before),
            ratio(at_rest) / ratio(before)
        )?;
        let [store, clusters, texts] = *left;
        writeln!(
            f,
            "left     {chunks_left} chunks: store {:.1} MB, clusters {:.1} MB, texts {:.1} MB",
            mb(store),
            mb(clusters),
            mb(texts)
        )
    }
}

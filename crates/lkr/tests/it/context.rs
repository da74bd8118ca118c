//! Contexts for language models.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::{future::join_all, stream::BoxStream};
use lkr::{ContextRequest, ContextResponse, DocId, KnowledgeBase, NewDocument, SearchRequest};
use lkr_text::{prompt_tokens, sentences};
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult, memory::InMemory,
    path::Path,
};
use proptest::prelude::*;

use crate::common::TestStores;

const WORDS: [&str; 12] = [
    "ice",
    "ocean",
    "volcano",
    "moon",
    "crater",
    "dust",
    "ring",
    "storm",
    "Europa’s",
    "1,560",
    "東京",
    "re-entry",
];

async fn add(kb: &KnowledgeBase, text: String) -> DocId {
    kb.add(NewDocument { text, ..NewDocument::default() }).await.unwrap().doc_id
}

/// Documents of headings and sentences.
fn texts() -> impl Strategy<Value = Vec<String>> {
    let sentence = prop::collection::vec(prop::sample::select(WORDS.as_slice()), 3..14)
        .prop_map(|words| format!("The {}.", words.join(" ")));
    let paragraph = prop::collection::vec(sentence, 1..30).prop_map(|sentences| sentences.join(" "));
    let section =
        (0_usize..4, prop::sample::select(WORDS.as_slice()), prop::collection::vec(paragraph, 1..4))
            .prop_map(|(level, heading, paragraphs)| {
                let heading =
                    if level == 0 { String::new() } else { format!("{} {heading}\n\n", "#".repeat(level)) };
                heading + &paragraphs.join("\n\n")
            });
    prop::collection::vec(
        prop::collection::vec(section, 1..6).prop_map(|sections| sections.join("\n\n")),
        1..5,
    )
}

fn part(text: &str, start: u32, end: u32) -> String {
    text.chars().skip(start as usize).take((end - start) as usize).collect()
}

/// Whether `text` consists of whole sentences of a chunk.
fn has_whole_sentences(text: &str, chunk: &str) -> bool {
    let Some(at) = chunk.find(text) else { return false };
    let ranges = sentences(chunk);
    ranges.iter().any(|range| range.start == at) && ranges.iter().any(|range| range.end == at + text.len())
}

async fn check(
    kb: &KnowledgeBase,
    texts: &HashMap<DocId, String>,
    response: &ContextResponse,
    max_tokens: usize,
) {
    assert!(response.tokens <= max_tokens, "{} of {max_tokens}", response.tokens);
    assert_eq!(response.tokens, prompt_tokens(&response.text));
    let mut expected = String::new();
    let mut best: BTreeMap<DocId, f32> = BTreeMap::new();
    let mut order: Vec<DocId> = Vec::new();
    let mut last_end = 0;
    for (number, passage) in (1..).zip(&response.passages) {
        if order.last() != Some(&passage.doc_id) {
            assert!(!order.contains(&passage.doc_id), "a document is shown twice");
            order.push(passage.doc_id);
            expected += &format!("# {}\n\n", passage.title);
            last_end = 0;
        }
        assert!(passage.char_start >= last_end && passage.char_start < passage.char_end, "passages overlap");
        last_end = passage.char_end;
        assert_eq!(passage.text, part(&texts[&passage.doc_id], passage.char_start, passage.char_end));
        assert_eq!(passage.marker, format!("[{number}]"));
        let head =
            if passage.path.is_empty() { String::new() } else { format!(" {}", passage.path.join(" > ")) };
        expected += &format!("[{number}]{head}\n{}\n\n", passage.text);
        let best = best.entry(passage.doc_id).or_insert(f32::MIN);
        *best = best.max(passage.score);

        let chunks = kb.chunks(passage.doc_id, 0, 1_000).await.unwrap().unwrap().items;
        let first = chunks.iter().position(|chunk| chunk.id == passage.chunk_ids[0]).unwrap();
        let ids: Vec<_> =
            chunks[first..].iter().take(passage.chunk_ids.len()).map(|chunk| chunk.id).collect();
        assert_eq!(ids, passage.chunk_ids, "the chunks of a passage follow one another");
        let last = &chunks[first + ids.len() - 1].value;
        let first = &chunks[first].value;
        assert_eq!(first.path, passage.path);
        assert!(first.span.start <= passage.char_start && passage.char_end <= last.span.end);
        let (head, tail) = (
            passage.char_start..first.span.end.min(passage.char_end),
            last.span.start.max(passage.char_start)..passage.char_end,
        );
        for (range, chunk) in [(head, first), (tail, last)] {
            assert!(has_whole_sentences(&part(&texts[&passage.doc_id], range.start, range.end), &chunk.text));
        }
    }
    assert_eq!(response.text, expected.trim_end());
    let scores: Vec<f32> = order.iter().map(|doc_id| best[doc_id]).collect();
    assert!(
        scores.is_sorted_by(|a, b| a >= b),
        "documents are not ordered by their best passage: {scores:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn context_is_whole_passages_within_the_budget(
        documents in texts(),
        queries in prop::collection::vec(prop::sample::select(WORDS.as_slice()), 3),
        budgets in prop::collection::vec(50_usize..3_000, 3),
    ) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let kb = TestStores::default().open(None).await;
            let mut texts = HashMap::new();
            for text in documents.into_iter().collect::<HashSet<_>>() {
                let doc_id = add(&kb, text).await;
                texts.insert(doc_id, kb.text(doc_id).await.unwrap().unwrap());
            }
            for (query, max_tokens) in queries.into_iter().zip(budgets) {
                let request = ContextRequest { max_tokens, ..ContextRequest::new(query) };
                check(&kb, &texts, &kb.context(&request).await.unwrap(), max_tokens).await;
            }
            kb.close().await;
        });
    }
}

#[tokio::test]
async fn context_completes_the_section_of_the_best_chunk() {
    let kb = TestStores::default().open(None).await;
    let filler =
        |word: &str| (0..40).map(|n| format!("Sentence {n} is about {word} and dust. ")).collect::<String>();
    let text = format!(
        "# Moons\n\n## Io\n\n{}\n\n## Europa\n\nAn ocean is hidden under ice. {}\n\n## Titan\n\n{}\n",
        filler("lava"),
        filler("shells"),
        filler("methane"),
    );
    let doc_id = add(&kb, text).await;
    let chunks = kb.chunks(doc_id, 0, 100).await.unwrap().unwrap().items;
    let europa: Vec<_> = chunks.iter().filter(|it| it.value.path == ["Europa"]).map(|it| it.id).collect();
    assert!(europa.len() > 1);
    let request = ContextRequest { max_tokens: 800, ..ContextRequest::new("ocean hidden under ice") };
    let response = kb.context(&request).await.unwrap();
    assert!(
        response.passages.iter().any(|it| europa.iter().all(|id| it.chunk_ids.contains(id))),
        "{response:?}"
    );
}

#[tokio::test]
async fn context_repeats_no_text_of_two_documents() {
    let kb = TestStores::default().open(None).await;
    let notice = "All rights in the glacier survey are reserved.";
    for name in ["Alps", "Andes"] {
        add(&kb, format!("# {name}\n\n## Notice\n\n{notice}\n\n## Ice\n\nThe {name} lose ice.\n")).await;
    }
    let found = kb.search(&SearchRequest::new("glacier survey rights")).await.unwrap().response;
    assert_eq!(found.results.iter().filter(|result| result.text == notice).count(), 2);
    let response = kb.context(&ContextRequest::new("glacier survey rights")).await.unwrap();
    assert_eq!(response.text.matches(notice).count(), 1, "{}", response.text);
}

/// A blob store that reads nothing while it is away, and takes a while to read.
#[derive(Debug, Default)]
struct Unreliable {
    blobs: InMemory,
    is_away: AtomicBool,
    reading: AtomicUsize,
    most_reading: AtomicUsize,
}

impl fmt::Display for Unreliable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.blobs.fmt(f)
    }
}

#[async_trait]
impl ObjectStore for Unreliable {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> StoreResult<PutResult> {
        self.blobs.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> StoreResult<Box<dyn MultipartUpload>> {
        self.blobs.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(object_store::Error::Generic { store: "test", source: "away".into() });
        }
        let reading = self.reading.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_reading.fetch_max(reading, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.reading.fetch_sub(1, Ordering::SeqCst);
        self.blobs.get_opts(path, options).await
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, StoreResult<Path>>,
    ) -> BoxStream<'static, StoreResult<Path>> {
        self.blobs.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        self.blobs.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.blobs.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.blobs.copy_opts(from, to, options).await
    }
}

#[tokio::test]
async fn context_without_texts_is_not_merged_and_says_so() {
    let blobs = Arc::new(Unreliable::default());
    let stores = TestStores { blobs: Arc::clone(&blobs) as Arc<dyn ObjectStore>, ..TestStores::default() };
    let kb = stores.open(None).await;
    let doc_id =
        add(&kb, "# Moons\n\n## Io\n\nIo has lava.\n\n## Europa\n\nEuropa has ice.\n".to_owned()).await;
    let request = ContextRequest::new("lava and ice");
    let merged = kb.context(&request).await.unwrap();
    assert_eq!((merged.passages.len(), merged.passages[0].chunk_ids.len()), (1, 2));
    blobs.is_away.store(true, Ordering::SeqCst);
    let response = kb.context(&request).await.unwrap();
    let chunks = kb.chunks(doc_id, 0, 10).await.unwrap().unwrap().items;
    let texts: Vec<&str> = response.passages.iter().map(|passage| passage.text.as_str()).collect();
    assert_eq!(texts, chunks.iter().map(|chunk| chunk.value.text.as_str()).collect::<Vec<_>>());
    assert!(
        response.warnings.iter().any(|warning| warning.contains("texts are unavailable")),
        "{response:?}"
    );
}

#[tokio::test]
async fn contexts_read_few_texts_at_once() {
    let blobs = Arc::new(Unreliable::default());
    let stores = TestStores { blobs: Arc::clone(&blobs) as Arc<dyn ObjectStore>, ..TestStores::default() };
    let kb = stores.open(None).await;
    add(&kb, "# Moons\n\n## Io\n\nIo has lava.\n\n## Europa\n\nEuropa has ice.\n".to_owned()).await;
    blobs.most_reading.store(0, Ordering::SeqCst);
    let request = ContextRequest::new("lava and ice");
    let contexts = join_all((0..48).map(|_| kb.context(&request))).await;
    assert!(contexts.into_iter().all(|context| context.unwrap().passages[0].chunk_ids.len() == 2));
    let most = blobs.most_reading.load(Ordering::SeqCst);
    assert!((1..=16).contains(&most), "{most} texts were read at once");
}

#[tokio::test]
async fn context_of_a_long_text_is_cut_out_of_it() {
    let kb = TestStores::default().open(None).await;
    let filler = |n: u32| format!("## Part {n}\n\n{}\n\n", "Dust é東😀 lies on the moon. ".repeat(1_500));
    let filler = |parts: std::ops::Range<u32>| parts.map(filler).collect::<String>();
    let text = format!(
        "# Moons\n\n{}## Io\n\nIo has lava.\n\n## Europa\n\nEuropa has ice.\n\n{}",
        filler(0..15),
        filler(15..30)
    );
    assert!(text.len() > 1 << 20);
    let doc_id = add(&kb, text).await;
    let text = kb.text(doc_id).await.unwrap().unwrap();
    let response =
        kb.context(&ContextRequest { max_tokens: 400, ..ContextRequest::new("lava and ice") }).await;
    let response = response.unwrap();
    assert!(
        response
            .passages
            .iter()
            .any(|passage| passage.text.contains("Io has lava.") && passage.text.contains("Europa has ice."))
    );
    for passage in &response.passages {
        assert_eq!(passage.text, part(&text, passage.char_start, passage.char_end));
    }
}

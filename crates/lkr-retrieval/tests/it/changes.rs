//! Documents that change before, between and during searches.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use lkr_catalog::tags_of;
use lkr_domain::{DocId, Document, Layer, Metadata, PointId};
use lkr_models::{Embedder, EmbedderSource};
use lkr_retrieval::{
    CacheStatus, MemoryCache, Mode, SearchFilters, SearchOptions, SearchRequest, SearchResponse, Searcher,
};
use lkr_vectors::{
    BegunBatch, Collection, CollectionSpec, Condition, DenseSpec, ErrorKind, FailingVectors, Filter, Hit,
    Include, Page, Point, Query, Result, ScrollCursor, Tags, VectorStore, may_block,
};
use tokio::time::sleep;

use crate::base::{BlockedEmbedder, TestBase, TestDocument, WordEmbedder, respond, titles};

fn moons(text: &str) -> TestDocument<'_> {
    TestDocument { title: "Moons", text, ..TestDocument::default() }
}

const OLD: &str = "Europa hides an ocean under its ice.";
const NEW: &str = "The ocean of Europa is salty.";

fn request() -> SearchRequest {
    SearchRequest::new("the ocean of Europa")
}

#[tokio::test]
async fn unpublished_document_is_not_found_until_published() {
    let base = TestBase::embedded().await;
    let searcher = base.searcher();
    let (document, _) = base.write(DocId::new(), 1, &moons(OLD)).await;
    let response = respond(&searcher, &request()).await;
    assert!(response.results.is_empty() && response.layers.l1.is_empty());
    base.publish(&document).await;
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!((searched.cache, titles(&searched.response)), (CacheStatus::Miss, vec!["Moons"]));
}

#[tokio::test]
async fn lesson_05_cache_shows_no_deleted_document() {
    let base = TestBase::embedded().await;
    let searcher = base.searcher();
    let (document, _) = base.add(moons(OLD)).await;
    base.add(TestDocument { title: "Oceans", text: "An ocean is deep.", ..TestDocument::default() }).await;
    assert_eq!(titles(&*respond(&searcher, &request()).await), ["Moons", "Oceans"]);
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
    base.delete(document.doc_id).await;
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!((searched.cache, titles(&searched.response)), (CacheStatus::Miss, vec!["Oceans"]));
    assert!(searched.response.layers.l1.iter().all(|hit| hit.doc_id != document.doc_id));
}

#[tokio::test]
async fn only_the_recorded_revision_is_shown() {
    let base = TestBase::embedded().await;
    let (old, _) = base.add(moons(OLD)).await;
    let (new, _) = base.write(old.doc_id, 2, &moons(NEW)).await;
    let searcher = base.searcher();
    let shown = respond(&searcher, &request()).await;
    assert_eq!(shown.results.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(), [OLD]);
    base.delete(old.doc_id).await;
    base.publish(&new).await;
    let shown = respond(&searcher, &request()).await;
    assert_eq!(shown.results.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(), [NEW]);
}

#[tokio::test]
async fn stale_points_of_a_large_document_do_not_displace_live_ones() {
    let base = TestBase::embedded().await;
    let many: String = (0..150).map(|n| format!("## Part {n}\n\nOcean ocean Europa {n}.\n\n")).collect();
    let (deleted, _) =
        base.add(TestDocument { title: "Europa ocean", text: &many, ..TestDocument::default() }).await;
    let (unpublished, _) = base
        .write(
            DocId::new(),
            1,
            &TestDocument { title: "Europa ocean", text: &many, ..TestDocument::default() },
        )
        .await;
    assert!(deleted.counts.chunks > 100 && unpublished.counts.chunks > 100);
    base.add(TestDocument {
        title: "Alive",
        text: "There is one ocean here, far down.",
        ..TestDocument::default()
    })
    .await;
    base.delete(deleted.doc_id).await;
    assert_eq!(titles(&*respond(&base.searcher(), &request()).await), ["Alive"]);
}

#[tokio::test]
async fn stale_points_of_many_small_documents_do_not_displace_live_ones() {
    let base = TestBase::embedded().await;
    for _ in 0..600 {
        let unpublished =
            TestDocument { title: "Europa ocean", text: "Ocean ocean Europa.", ..TestDocument::default() };
        base.write(DocId::new(), 1, &unpublished).await;
    }
    base.add(TestDocument {
        title: "Alive",
        text: "There is one ocean here, far down.",
        ..TestDocument::default()
    })
    .await;
    assert_eq!(titles(&*respond(&base.searcher(), &request()).await), ["Alive"]);
}

/// A moment of a search: before or after the n-th batch of queries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Before(usize),
    After(usize),
}

type Callback = Box<dyn Fn(Moment) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store that calls back before and after each batch of queries.
struct InterruptedStore {
    inner: Arc<dyn VectorStore>,
    reads_block: bool,
    batches: AtomicUsize,
    begun: AtomicUsize,
    /// How many points were read.
    read: AtomicUsize,
    callback: Callback,
}

impl InterruptedStore {
    fn new(
        inner: Arc<dyn VectorStore>,
        callback: impl Fn(Moment) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let [batches, begun, read] = [0; 3].map(AtomicUsize::new);
        Arc::new(Self { inner, reads_block: false, batches, begun, read, callback: Box::new(callback) })
    }

    /// A store whose reads block, and which begins batches.
    fn blocking(inner: Arc<dyn VectorStore>) -> Arc<Self> {
        let store = Self::new(inner, |_| Box::pin(async {}));
        Arc::new(Self { reads_block: true, ..Arc::into_inner(store).unwrap() })
    }
}

impl std::fmt::Debug for InterruptedStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InterruptedStore")
    }
}

#[async_trait]
impl VectorStore for InterruptedStore {
    async fn ensure(&self, spec: &CollectionSpec) -> Result<()> {
        self.inner.ensure(spec).await
    }

    async fn describe(&self, collection: &Collection) -> Result<Option<CollectionSpec>> {
        self.inner.describe(collection).await
    }

    async fn collections(&self) -> Result<Vec<CollectionSpec>> {
        self.inner.collections().await
    }

    async fn switch(&self, aliases: &[(Collection, Collection)]) -> Result<()> {
        self.inner.switch(aliases).await
    }

    async fn drop_collection(&self, collection: &Collection) -> Result<()> {
        self.inner.drop_collection(collection).await
    }

    async fn upsert(&self, collection: &Collection, points: Vec<Point>) -> Result<()> {
        self.inner.upsert(collection, points).await
    }

    async fn upsert_all(&self, points: Vec<(Collection, Vec<Point>)>) -> Result<()> {
        self.inner.upsert_all(points).await
    }

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inner.delete(collection, filter).await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        self.inner.set_tags(collection, filter, tags).await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        (self.callback)(Moment::Before(batch)).await;
        let hits = self.inner.query_batch(queries).await;
        (self.callback)(Moment::After(batch)).await;
        hits
    }

    fn begin_batch(&self, queries: &[Query]) -> Result<Option<Box<dyn BegunBatch>>> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.inner.begin_batch(queries)
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        let points = self.inner.get(collection, ids, with).await;
        self.read.fetch_add(ids.len(), Ordering::Relaxed);
        points
    }

    async fn scroll(
        &self,
        collection: &Collection,
        filter: &Filter,
        after: Option<&ScrollCursor>,
        limit: usize,
        with: Include,
    ) -> Result<Page> {
        self.inner.scroll(collection, filter, after, limit, with).await
    }

    async fn count(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inner.count(collection, filter).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).await
    }

    fn reads_block(&self) -> bool {
        self.reads_block
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }
}

#[tokio::test]
async fn store_whose_reads_block_is_asked_by_a_thread_that_may() {
    let base = TestBase::embedded().await;
    base.add(moons(NEW)).await;
    let mut responses = Vec::new();
    for reads_block in [false, true] {
        let blocking = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&blocking);
        let store = InterruptedStore::new(base.vectors.clone(), move |_| {
            counted.fetch_add(may_block().into(), Ordering::Relaxed);
            Box::pin(async {})
        });
        let store = InterruptedStore { reads_block, ..Arc::into_inner(store).unwrap() };
        let response = respond(&base.searcher_over(Arc::new(store)), &request()).await;
        responses.push(SearchResponse { took_ms: 0, ..Arc::unwrap_or_clone(response) });
        // Before and after the batch.
        assert_eq!(blocking.load(Ordering::Relaxed), if reads_block { 2 } else { 0 });
    }
    assert_eq!(titles(&responses[0]), ["Moons"]);
    assert_eq!(responses[0], responses[1]);
}

#[tokio::test]
async fn sparse_legs_that_begin_before_the_query_is_embedded_change_no_result() {
    let mut responses = Vec::new();
    for embedder in [WordEmbedder::new("words"), WordEmbedder::in_process("words")] {
        let base = TestBase::new(Some(embedder.clone())).await;
        for n in 0..30_u8 {
            let text =
                format!("# Ocean {n}\n\nEuropa has an ocean.\n\n## Part {n}\n\nIts ice is {n} km thick.");
            let document = TestDocument { title: "Oceans", text: &text, ..TestDocument::default() };
            let (written, _) = base.write(DocId::from_bytes([n; 16]), 1, &document).await;
            base.publish(&written).await;
        }
        let store = InterruptedStore::blocking(base.vectors.clone());
        let searcher = base.searcher_over(store.clone());
        let found = [Mode::Layered, Mode::Flat].map(|mode| SearchRequest { mode, ..request() });
        for request in found {
            let searched = searcher.search(&request).await.unwrap();
            let ranked: Vec<_> =
                searched.response.results.iter().map(|r| (r.text.clone(), r.score)).collect();
            let legs: Vec<_> = searched
                .profile
                .unwrap()
                .legs
                .iter()
                .map(|leg| (leg.layer, leg.kind, leg.candidates))
                .collect();
            assert_eq!((ranked.len(), legs.len()), (10, if request.mode == Mode::Layered { 8 } else { 2 }));
            responses.push((ranked, legs));
        }
        let (batches, begun) = (store.batches.load(Ordering::Relaxed), store.begun.load(Ordering::Relaxed));
        assert_eq!((batches, begun), if embedder.profile().runs_in_process() { (0, 2) } else { (2, 0) });
    }
    let begun = responses.split_off(2);
    assert_eq!(responses, begun);
}

/// A base of one document, and a searcher whose model waits.
struct SlowSearch {
    base: TestBase,
    document: DocId,
    embedder: Arc<BlockedEmbedder>,
    store: Arc<InterruptedStore>,
    searcher: Searcher,
}

impl SlowSearch {
    async fn new() -> Self {
        let inner = WordEmbedder::in_process("words");
        let base = TestBase::new(Some(inner.clone())).await;
        let (document, _) = base.add(moons(OLD)).await;
        let embedder = Arc::new(BlockedEmbedder::new(inner));
        let store = InterruptedStore::blocking(base.vectors.clone());
        let searcher = Searcher::new(
            store.clone(),
            base.catalog.clone(),
            Some(embedder.clone()),
            Arc::new(MemoryCache::default()),
            SearchOptions::default(),
        );
        Self { base, document: document.doc_id, embedder, store, searcher }
    }

    /// Searches, and does `work` while the query is embedded.
    async fn search_beside(&self, work: BoxFuture<'_, ()>) -> Arc<SearchResponse> {
        let request = request();
        let (response, ()) = tokio::join!(respond(&self.searcher, &request), async {
            let _entered = self.embedder.entered.acquire().await.unwrap();
            work.await;
            self.embedder.released.add_permits(9);
        });
        response
    }

    /// Waits until the chunk that the sparse leg found was read.
    async fn chunk_was_read(&self) {
        while self.store.read.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        // It is examined then.
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn document_published_while_the_query_is_embedded_is_found_by_the_next_search() {
    let slow = SlowSearch::new().await;
    let more = TestDocument { title: "More moons", text: NEW, ..TestDocument::default() };
    let publish = async {
        // The search has begun its legs by then.
        slow.chunk_was_read().await;
        slow.base.add(more).await;
    };
    let during = slow.search_beside(Box::pin(publish)).await;
    assert_eq!(titles(&during), ["Moons"], "all legs see the state in which the search began");
    assert_eq!(respond(&slow.searcher, &request()).await.results.len(), 2);
}

#[tokio::test]
async fn chunks_that_words_find_are_read_once_while_the_query_is_embedded() {
    let mut reads = Vec::new();
    // On a busy machine, the chunk that was read may not have been examined in time; then it is read again.
    while reads.len() < 20 && !reads.contains(&3) {
        let slow = SlowSearch::new().await;
        let found = slow.search_beside(Box::pin(slow.chunk_was_read())).await;
        assert_eq!(titles(&found), ["Moons"]);
        assert_eq!(found.results[0].text, OLD);
        reads.push(slow.store.read.load(Ordering::Relaxed));
        let expected = respond(&slow.base.searcher(), &request()).await;
        let [found, expected] =
            [found, expected].map(|it| SearchResponse { took_ms: 0, ..Arc::unwrap_or_clone(it) });
        assert_eq!(found, expected);
    }
    // The chunk, its section and its subsection.
    assert_eq!(reads.last(), Some(&3), "{reads:?}");
}

#[tokio::test]
async fn document_deleted_while_the_query_is_embedded_is_not_shown() {
    let slow = SlowSearch::new().await;
    let delete = async {
        slow.chunk_was_read().await;
        slow.base.delete(slow.document).await;
    };
    let deleted = slow.search_beside(Box::pin(delete)).await;
    assert!(deleted.results.is_empty() && deleted.layers.l1.is_empty(), "{deleted:?}");
}

#[tokio::test]
async fn sparse_legs_that_fail_while_the_query_is_embedded_are_asked_again() {
    let embedder = WordEmbedder::in_process("words");
    let base = TestBase::new(Some(embedder)).await;
    base.add(moons(OLD)).await;
    let failures = AtomicUsize::new(0);
    let failing = FailingVectors::new(base.vectors.clone(), move |operation| {
        let fails = operation == "query_batch" && failures.fetch_add(1, Ordering::Relaxed) == 0;
        fails.then_some(ErrorKind::NotFound)
    });
    let store = InterruptedStore::blocking(Arc::new(failing));
    let found = respond(&base.searcher_over(store.clone()), &request()).await;
    assert_eq!(titles(&found), ["Moons"]);
    let (batches, begun) = (store.batches.load(Ordering::Relaxed), store.begun.load(Ordering::Relaxed));
    assert_eq!((batches, begun), (1, 1));
}

#[tokio::test]
async fn document_replaced_during_a_search_is_shown_in_one_revision() {
    let base = TestBase::embedded().await;
    let (old, _) = base.add(moons(OLD)).await;
    let writer = base.clone();
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let base = writer.clone();
        Box::pin(async move {
            if moment == Moment::After(0) {
                let (new, _) = base.write(old.doc_id, 2, &moons(NEW)).await;
                base.delete(old.doc_id).await;
                base.publish(&new).await;
                for layer in Layer::ALL {
                    let replaced = Filter::only(Condition::Revision(old.doc_id, 1));
                    base.vectors.delete(&layer.into(), &replaced).await.unwrap();
                }
            }
        })
    });
    let response = respond(&base.searcher_over(store), &request()).await;
    assert_eq!(response.results.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(), [NEW]);
}

/// The document dominates the page, so that others are asked for in a second batch. Its new revision is one of them.
#[tokio::test]
async fn document_replaced_before_the_second_batch_is_shown_in_one_revision() {
    let base = TestBase::embedded().await;
    let text = |word: &str| -> String {
        (0..150).map(|n| format!("## Part {n}\n\nThe {word} ocean of Europa {n}.\n\n")).collect()
    };
    let (old, _) = base.add(moons(&text("old"))).await;
    assert!(old.counts.chunks > 100);
    let (writer, replacement) = (base.clone(), text("new"));
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let (base, text) = (writer.clone(), replacement.clone());
        Box::pin(async move {
            if moment == Moment::Before(1) {
                let (new, _) = base.write(old.doc_id, 2, &moons(&text)).await;
                base.delete(old.doc_id).await;
                base.publish(&new).await;
            }
        })
    });
    let response = respond(&base.searcher_over(store), &request()).await;
    assert_eq!(response.results.len(), request().top_k);
    for result in &response.results {
        assert!(result.revision == 2 && result.text.contains("new"), "{result:?}");
    }
}

#[tokio::test]
async fn document_deleted_before_the_second_round_is_not_shown() {
    let base = TestBase::embedded().await;
    base.add(TestDocument { title: "Oceans", text: "An ocean is deep.", ..TestDocument::default() }).await;
    let (deleted, _) = base.add(moons(NEW)).await;
    let writer = base.clone();
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let base = writer.clone();
        Box::pin(async move {
            if moment == Moment::Before(1) {
                base.delete(deleted.doc_id).await;
            }
        })
    });
    let options = SearchOptions { second_round: true, ..SearchOptions::default() };
    let response = respond(&base.searcher_with(store, options), &request()).await;
    assert_eq!(titles(&response), ["Oceans"]);
}

/// A change of a document sets the tags of its points before it writes the record.
#[tokio::test]
async fn document_whose_tags_alone_match_a_filter_is_not_shown() {
    let base = TestBase::embedded().await;
    let added = TestDocument { source: "old", category: "old", metadata: &[("kind", "old")], ..moons(OLD) };
    let (document, _) = base.add(added).await;
    let new = || "new".to_owned();
    let metadata = Metadata::from([("kind".to_owned(), new())]);
    let changed = Document { source: new(), category: new(), language: new(), metadata, ..document };
    for layer in Layer::ALL {
        let points = Filter::only(Condition::Docs(vec![changed.doc_id]));
        base.vectors.set_tags(&layer.into(), &points, &tags_of(&changed)).await.unwrap();
    }
    let searcher = base.searcher();
    let none = SearchFilters::default;
    for filters in [
        SearchFilters { source: Some(new()), ..none() },
        SearchFilters { category: Some(new()), ..none() },
        SearchFilters { language: Some(new()), ..none() },
        SearchFilters { metadata: changed.metadata.clone(), ..none() },
    ] {
        let filtered = SearchRequest { filters, ..request() };
        assert!(respond(&searcher, &filtered).await.results.is_empty(), "{:?}", filtered.filters);
    }
    assert_eq!(titles(&*respond(&searcher, &request()).await), ["Moons"]);
}

/// The unpublished revision displaces the live one, so the next round excludes it; then it is published.
#[tokio::test]
async fn revision_published_while_excluded_is_shown() {
    let base = TestBase::embedded().await;
    let (old, _) = base.add(moons(OLD)).await;
    let many: String = (0..150).map(|n| format!("## Part {n}\n\nOcean ocean Europa {n}.\n\n")).collect();
    let (new, _) = base.write(old.doc_id, 2, &moons(&many)).await;
    assert!(new.counts.chunks > 100);
    let writer = base.clone();
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let (base, new) = (writer.clone(), new.clone());
        Box::pin(async move {
            if moment == Moment::Before(1) {
                base.delete(new.doc_id).await;
                base.publish(&new).await;
            }
        })
    });
    let response = respond(&base.searcher_over(store), &request()).await;
    assert_eq!(response.results.len(), request().top_k);
    assert!(response.results.iter().all(|result| result.text != OLD));
}

#[tokio::test]
async fn document_deleted_during_a_search_is_neither_shown_nor_cached() {
    let base = TestBase::embedded().await;
    let (document, _) = base.add(moons(OLD)).await;
    let writer = base.clone();
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let base = writer.clone();
        Box::pin(async move {
            if moment == Moment::After(0) {
                base.delete(document.doc_id).await;
            }
        })
    });
    let searcher = base.searcher_over(store);
    assert!(respond(&searcher, &request()).await.results.is_empty());
    assert!(respond(&searcher, &request()).await.results.is_empty());
}

#[tokio::test]
async fn document_published_during_a_search_is_found_by_the_next() {
    let base = TestBase::embedded().await;
    let writer = base.clone();
    let store = InterruptedStore::new(base.vectors.clone(), move |moment| {
        let base = writer.clone();
        Box::pin(async move {
            if moment == Moment::After(0) {
                base.add(moons(OLD)).await;
            }
        })
    });
    let searcher = base.searcher_over(store);
    assert!(respond(&searcher, &request()).await.results.is_empty());
    assert_eq!(titles(&*respond(&searcher, &request()).await), ["Moons"]);
}

/// Switches the collections to those of another model before the first batch of queries.
fn switching(base: &TestBase, model: &'static str) -> Arc<InterruptedStore> {
    let writer = base.clone();
    InterruptedStore::new(base.vectors.clone(), move |moment| {
        let base = writer.clone();
        Box::pin(async move {
            if moment != Moment::Before(0) {
                return;
            }
            for layer in Layer::ALL {
                let alias = Collection::from(layer);
                let spec = base.vectors.describe(&alias).await.unwrap().unwrap();
                let new = Collection::new(format!("{layer}.second")).unwrap();
                let dense = spec.dense.map(|dense| DenseSpec { model: model.to_owned(), ..dense });
                base.vectors.ensure(&CollectionSpec { collection: new.clone(), dense }).await.unwrap();
                let all =
                    base.vectors.scroll(&alias, &Filter::all(), None, 1_000, Include::All).await.unwrap();
                base.vectors.upsert(&new, all.points).await.unwrap();
                base.vectors.switch(&[(alias, new)]).await.unwrap();
                base.vectors.drop_collection(&spec.collection).await.unwrap();
            }
        })
    })
}

#[tokio::test]
async fn search_succeeds_while_collections_are_switched_and_dropped() {
    let base = TestBase::embedded().await;
    base.add(moons(OLD)).await;
    let searcher = base.searcher_over(switching(&base, "words"));
    for query in ["the ocean of Europa", "the ice of Europa"] {
        assert_eq!(titles(&*respond(&searcher, &SearchRequest::new(query)).await), ["Moons"]);
    }
}

#[derive(Debug)]
struct TwoEmbedders([Arc<dyn Embedder>; 2]);

impl EmbedderSource for TwoEmbedders {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        self.0.to_vec()
    }
}

/// A search that began with one model restarts with the other. It neither falls back to keywords nor mixes vectors.
#[tokio::test]
async fn lesson_12_search_restarts_when_its_model_is_switched() {
    let base = TestBase::embedded().await;
    base.add(moons(OLD)).await;
    let both = [WordEmbedder::new("others"), WordEmbedder::new("words")];
    let source = Arc::new(TwoEmbedders(both.map(|embedder| embedder as Arc<dyn Embedder>)));
    let searcher = base.searcher_over(switching(&base, "others")).with_embedders(source);
    let switched = searcher.search(&request()).await.unwrap();
    assert_eq!((switched.cache, titles(&switched.response)), (CacheStatus::Miss, vec!["Moons"]));
    assert_eq!(switched.response.warnings, Vec::<String>::new());
    assert!(switched.response.results[0].scores.dense.is_some());
    let spec = base.vectors.describe(&Layer::Chunks.into()).await.unwrap().unwrap();
    assert_eq!(spec.dense.unwrap().model, "others", "the collections were not switched");
    // The response is cached under the new model.
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
}

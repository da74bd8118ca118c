//! Documents that change before, between and during searches.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use lkr_domain::{DocId, Layer, PointId};
use lkr_models::{Embedder, EmbedderSource};
use lkr_retrieval::{CacheStatus, SearchRequest};
use lkr_vectors::{
    Collection, CollectionSpec, Condition, DenseSpec, Filter, Hit, Include, Page, Point, Query, Result,
    ScrollCursor, Tags, VectorStore,
};

use crate::base::{Base, Given, WordEmbedder, respond, titles};

fn moons(text: &str) -> Given<'_> {
    Given { title: "Moons", text, ..Given::default() }
}

const OLD: &str = "Europa hides an ocean under its ice.";
const NEW: &str = "The ocean of Europa is salty.";

fn request() -> SearchRequest {
    SearchRequest::new("the ocean of Europa")
}

#[tokio::test]
async fn what_is_not_published_is_not_shown() {
    let base = Base::embedded().await;
    let searcher = base.searcher();
    let (document, _) = base.write(DocId::new(), 1, &moons(OLD)).await;
    let response = respond(&searcher, &request()).await;
    assert!(response.results.is_empty() && response.layers.l1.is_empty());
    base.publish(&document).await;
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!((searched.cache, titles(&searched.response)), (CacheStatus::Miss, vec!["Moons"]));
}

#[tokio::test]
async fn lesson_05_a_deleted_document_is_gone_from_the_cache_too() {
    let base = Base::embedded().await;
    let searcher = base.searcher();
    let (document, _) = base.add(moons(OLD)).await;
    base.add(Given { title: "Oceans", text: "An ocean is deep.", ..Given::default() }).await;
    assert_eq!(titles(&*respond(&searcher, &request()).await), ["Moons", "Oceans"]);
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
    base.delete(document.doc_id).await;
    let searched = searcher.search(&request()).await.unwrap();
    assert_eq!((searched.cache, titles(&searched.response)), (CacheStatus::Miss, vec!["Oceans"]));
    assert!(searched.response.layers.l1.iter().all(|hit| hit.doc_id != document.doc_id));
}

#[tokio::test]
async fn only_the_recorded_revision_is_shown() {
    let base = Base::embedded().await;
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
async fn the_dead_do_not_crowd_out_the_living() {
    let base = Base::embedded().await;
    let many: String = (0..150).map(|n| format!("## Part {n}\n\nOcean ocean Europa {n}.\n\n")).collect();
    let (dead, _) = base.add(Given { title: "Europa ocean", text: &many, ..Given::default() }).await;
    let (unpublished, _) =
        base.write(DocId::new(), 1, &Given { title: "Europa ocean", text: &many, ..Given::default() }).await;
    assert!(dead.counts.chunks > 100 && unpublished.counts.chunks > 100);
    base.add(Given { title: "Alive", text: "There is one ocean here, far down.", ..Given::default() }).await;
    base.delete(dead.doc_id).await;
    assert_eq!(titles(&*respond(&base.searcher(), &request()).await), ["Alive"]);
}

#[tokio::test]
async fn many_small_dead_documents_do_not_either() {
    let base = Base::embedded().await;
    for _ in 0..600 {
        let dead = Given { title: "Europa ocean", text: "Ocean ocean Europa.", ..Given::default() };
        base.write(DocId::new(), 1, &dead).await;
    }
    base.add(Given { title: "Alive", text: "There is one ocean here, far down.", ..Given::default() }).await;
    assert_eq!(titles(&*respond(&base.searcher(), &request()).await), ["Alive"]);
}

/// When something happens: before or after the n-th batch of queries.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Before(usize),
    After(usize),
}

type Hook = Box<dyn Fn(Moment) -> BoxFuture<'static, ()> + Send + Sync>;

/// A store that lets something happen around each batch of queries.
struct Interrupted {
    inner: Arc<dyn VectorStore>,
    batches: AtomicUsize,
    hook: Hook,
}

impl Interrupted {
    fn new(
        inner: Arc<dyn VectorStore>,
        hook: impl Fn(Moment) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self { inner, batches: AtomicUsize::new(0), hook: Box::new(hook) })
    }
}

impl std::fmt::Debug for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Interrupted")
    }
}

#[async_trait]
impl VectorStore for Interrupted {
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

    async fn delete(&self, collection: &Collection, filter: &Filter) -> Result<u64> {
        self.inner.delete(collection, filter).await
    }

    async fn set_tags(&self, collection: &Collection, filter: &Filter, tags: &Tags) -> Result<u64> {
        self.inner.set_tags(collection, filter, tags).await
    }

    async fn query_batch(&self, queries: &[Query]) -> Result<Vec<Vec<Hit>>> {
        let batch = self.batches.fetch_add(1, Ordering::Relaxed);
        (self.hook)(Moment::Before(batch)).await;
        let answer = self.inner.query_batch(queries).await;
        (self.hook)(Moment::After(batch)).await;
        answer
    }

    async fn get(
        &self,
        collection: &Collection,
        ids: &[PointId],
        with: Include,
    ) -> Result<Vec<Option<Point>>> {
        self.inner.get(collection, ids, with).await
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

    async fn health(&self) -> Result<()> {
        self.inner.health().await
    }
}

#[tokio::test]
async fn a_document_replaced_during_a_search_is_shown_old_or_new() {
    let base = Base::embedded().await;
    let (old, _) = base.add(moons(OLD)).await;
    let inside = base.clone();
    let store = Interrupted::new(base.vectors.clone(), move |moment| {
        let base = inside.clone();
        Box::pin(async move {
            if moment == Moment::After(0) {
                let (new, _) = base.write(old.doc_id, 2, &moons(NEW)).await;
                base.delete(old.doc_id).await;
                base.publish(&new).await;
                for layer in Layer::ALL {
                    let gone = Filter::only(Condition::Revision(old.doc_id, 1));
                    base.vectors.delete(&layer.into(), &gone).await.unwrap();
                }
            }
        })
    });
    let response = respond(&base.searcher_over(store), &request()).await;
    assert_eq!(response.results.iter().map(|r| r.text.as_str()).collect::<Vec<_>>(), [NEW]);
}

/// What comes crowds out what is there, is passed over for it, and is published just then.
#[tokio::test]
async fn a_document_replaced_by_what_was_passed_over_is_shown() {
    let base = Base::embedded().await;
    let (old, _) = base.add(moons(OLD)).await;
    let many: String = (0..150).map(|n| format!("## Part {n}\n\nOcean ocean Europa {n}.\n\n")).collect();
    let (new, _) = base.write(old.doc_id, 2, &moons(&many)).await;
    assert!(new.counts.chunks > 100);
    let inside = base.clone();
    let store = Interrupted::new(base.vectors.clone(), move |moment| {
        let (base, new) = (inside.clone(), new.clone());
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
async fn a_delete_during_a_search_is_not_shown_and_not_remembered_wrongly() {
    let base = Base::embedded().await;
    let (document, _) = base.add(moons(OLD)).await;
    let inside = base.clone();
    let store = Interrupted::new(base.vectors.clone(), move |moment| {
        let base = inside.clone();
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
async fn what_is_published_during_a_search_is_shown_by_the_next() {
    let base = Base::embedded().await;
    let inside = base.clone();
    let store = Interrupted::new(base.vectors.clone(), move |moment| {
        let base = inside.clone();
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

/// Before the first batch of queries, collections of a model take the place of those that are there.
fn switching(base: &Base, model: &'static str) -> Arc<Interrupted> {
    let inside = base.clone();
    Interrupted::new(base.vectors.clone(), move |moment| {
        let base = inside.clone();
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
async fn a_search_goes_on_while_collections_are_switched_and_dropped() {
    let base = Base::embedded().await;
    base.add(moons(OLD)).await;
    let searcher = base.searcher_over(switching(&base, "words"));
    for query in ["the ocean of Europa", "the ice of Europa"] {
        assert_eq!(titles(&*respond(&searcher, &SearchRequest::new(query)).await), ["Moons"]);
    }
}

#[derive(Debug)]
struct Both([Arc<dyn Embedder>; 2]);

impl EmbedderSource for Both {
    fn embedders(&self) -> Vec<Arc<dyn Embedder>> {
        self.0.to_vec()
    }
}

/// A search that began with one model ends with the other, whole: not by words, and not by vectors of both.
#[tokio::test]
async fn lesson_12_a_search_begins_anew_where_its_model_is_switched_away() {
    let base = Base::embedded().await;
    base.add(moons(OLD)).await;
    let both = [WordEmbedder::new("others"), WordEmbedder::new("words")];
    let source = Arc::new(Both(both.map(|embedder| embedder as Arc<dyn Embedder>)));
    let searcher = base.searcher_over(switching(&base, "others")).embedding(source);
    let before = searcher.search(&request()).await.unwrap();
    assert_eq!((before.cache, titles(&before.response)), (CacheStatus::Miss, vec!["Moons"]));
    assert_eq!(before.response.warnings, Vec::<String>::new());
    assert!(before.response.results[0].scores.dense.is_some());
    let spec = base.vectors.describe(&Layer::Chunks.into()).await.unwrap().unwrap();
    assert_eq!(spec.dense.unwrap().model, "others", "it was switched");
    // What was found is kept for those who ask the new model.
    assert_eq!(searcher.search(&request()).await.unwrap().cache, CacheStatus::Hit);
}

//! Documents move between the spaces of a scope before every read of the store. Listings, counts and statistics of
//! the scope contain each of them once.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod support;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use lkr_catalog::{Catalog, ListFilter, ListOrder};
use lkr_domain::{DocId, Document, Fingerprint, Scope, SpaceName};
use lkr_state::{FailingState, MemoryState};
use rand::{RngExt, SeedableRng, rngs::StdRng};

/// More documents than a listing or statistics read at a time.
const DOCUMENTS: u64 = 1_200;

/// The documents with a multiple of this number have the source that a filter asks for.
const RARE: u64 = 60;

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn doc_id(n: u64) -> DocId {
    DocId::from_bytes(u128::from(n + 10).to_be_bytes())
}

fn document(n: u64, space: SpaceName) -> Document {
    Document {
        title: format!("Title {n}"),
        source: if n.is_multiple_of(RARE) { "rare" } else { "common" }.to_owned(),
        fingerprint: Some(Fingerprint { sha256: n.to_string(), simhash: n }),
        ..support::document(doc_id(n), space)
    }
}

/// Puts a document into a space, or moves it there.
async fn put(catalog: &Catalog, n: u64, space: SpaceName) {
    let before = catalog.document_state(doc_id(n)).await.unwrap();
    catalog.change(&before, &document(n, space), None, None, Vec::new()).await.unwrap();
}

/// A catalog in which up to three documents move to one of the spaces before every operation of the store. Each space
/// has runs of neighbouring documents.
async fn with_moves(seed: u64, documents: u64, spaces: &[SpaceName]) -> Catalog {
    let state = Arc::new(MemoryState::new());
    let catalog = Catalog::new(Arc::clone(&state) as _);
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut n, mut next) = (0, 0);
    while n < documents {
        let run = [1, 2, 30, 300][rng.random_range(0..4)];
        for _ in 0..run.min(documents - n) {
            // All spaces but the last one, which is empty at the beginning.
            put(&catalog, n, spaces[next % (spaces.len() - 1)].clone()).await;
            n += 1;
        }
        next += rng.random_range(1..3);
    }
    let (rng, spaces) = (Arc::new(Mutex::new(rng)), spaces.to_vec());
    let moving = FailingState::with_async_fault(state, move |_| {
        let moves: Vec<(u64, SpaceName)> = {
            let mut rng = rng.lock().unwrap();
            let count = rng.random_range(0..4);
            let mut a_move =
                || (rng.random_range(0..documents), spaces[rng.random_range(0..spaces.len())].clone());
            (0..count).map(|_| a_move()).collect()
        };
        let catalog = catalog.clone();
        Box::pin(async move {
            for (n, space) in moves {
                put(&catalog, n, space).await;
            }
            None
        })
    });
    Catalog::new(Arc::new(moving))
}

/// The documents of all pages.
async fn listed(catalog: &Catalog, scope: &Scope, filter: &ListFilter, limit: usize) -> Vec<DocId> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = catalog.list(scope, filter, after, limit).await.unwrap();
        found.extend(page.items.iter().map(|document| document.doc_id));
        after = page.next;
        if after.is_none() {
            return found;
        }
        assert_eq!(page.items.len(), limit, "only the last page is shorter");
    }
}

#[tokio::test]
async fn listings_and_counts_during_moves_contain_each_document_once() {
    let spaces: Vec<SpaceName> = ["a", "b", "c", "d-new"].map(space).into();
    let scope: Scope = spaces.iter().cloned().collect();
    let rare = ListFilter { source: Some("rare".to_owned()), ..ListFilter::default() };
    for (seed, limit) in [3, 20, 100, 5_000].into_iter().enumerate() {
        let catalog = with_moves(seed as u64, DOCUMENTS, &spaces).await;
        let all: Vec<DocId> = (0..DOCUMENTS).rev().map(doc_id).collect();
        assert_eq!(listed(&catalog, &scope, &ListFilter::default(), limit).await, all, "pages of {limit}");
        let few: Vec<DocId> = (0..DOCUMENTS).rev().filter(|n| n.is_multiple_of(RARE)).map(doc_id).collect();
        assert_eq!(listed(&catalog, &scope, &rare, limit).await, few, "pages of {limit}, filtered");
        let count = catalog.count(&scope, &ListFilter::default(), |_| true).await.unwrap();
        assert_eq!(count, DOCUMENTS);
    }
}

#[tokio::test]
async fn statistics_during_moves_count_each_document_once() {
    let spaces: Vec<SpaceName> = ["a", "b", "b-more", "new"].map(space).into();
    let some: Scope = spaces.iter().cloned().collect();
    for seed in 0..4 {
        for documents in [1, 30, 2_400] {
            for scope in [&some, &Scope::All] {
                let catalog = with_moves(seed, documents, &spaces).await;
                let stats = catalog.stats(scope).await.unwrap();
                assert_eq!(stats.counts.l1, documents, "seed {seed}, {scope:?}");
                assert_eq!((stats.counts.chunks, stats.uncategorized()), (4 * documents, documents));
            }
        }
    }
}

#[tokio::test]
async fn page_of_many_spaces_takes_few_scans() {
    let state = Arc::new(MemoryState::new());
    let scans = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&scans);
    let counting = FailingState::new(Arc::clone(&state) as _, move |operation| {
        counted.fetch_add(usize::from(operation == "scan"), Ordering::Relaxed);
        None
    });
    let catalog = Catalog::new(Arc::new(counting));
    let spaces: Vec<SpaceName> = (0..300).map(|n| space(&format!("s{n}"))).collect();
    // The newest documents are all in one space, so the others have to be read no further than a few entries.
    for n in 0..900 {
        put(&catalog, n, if n < 600 { spaces[n as usize % 300].clone() } else { spaces[7].clone() }).await;
    }
    scans.store(0, Ordering::Relaxed);
    let scope: Scope = spaces.into_iter().collect();
    let page = catalog.list(&scope, &ListFilter::default(), None, 20).await.unwrap();
    let newest: Vec<DocId> = (880..900).rev().map(doc_id).collect();
    assert_eq!(page.items.iter().map(|document| document.doc_id).collect::<Vec<_>>(), newest);
    assert!(scans.load(Ordering::Relaxed) <= 3, "{scans:?} scans for a page");
    assert_eq!(listed(&catalog, &scope, &ListFilter::default(), 20).await.len(), 900);
}

#[tokio::test]
async fn pages_in_either_order_follow_each_other() {
    let catalog = Catalog::new(Arc::new(MemoryState::new()));
    for n in 0..250 {
        put(&catalog, n, space("a")).await;
    }
    for (order, first) in [(ListOrder::OldestFirst, 0), (ListOrder::NewestFirst, 249)] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = catalog.list_space(&space("a"), order, after, 40).await.unwrap();
            found.extend(page.items.iter().map(|document| document.doc_id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((found.len(), found.first()), (250, Some(&doc_id(first))), "{order:?}");
        assert!(found.is_sorted() || found.iter().rev().is_sorted(), "{order:?}");
    }
}

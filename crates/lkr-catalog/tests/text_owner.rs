//! Whose texts are on a blob store.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod support;

use std::sync::Arc;

use lkr_catalog::{Catalog, TextOwner, Texts};
use lkr_domain::{DocId, SpaceName};
use lkr_state::MemoryState;
use object_store::{ObjectStoreExt, memory::InMemory};

fn catalog() -> Catalog {
    Catalog::new(Arc::new(MemoryState::new()))
}

fn texts() -> Texts {
    Texts::new(Arc::new(InMemory::new()))
}

/// Adds a document, with its text unless `texts` is `None`.
async fn add(catalog: &Catalog, texts: Option<&Texts>, n: u8) {
    let document = support::document(DocId::from_bytes([n; 16]), SpaceName::default());
    let before = catalog.document_state(document.doc_id).await.unwrap();
    catalog.change(&before, &document, None, None, Vec::new()).await.unwrap();
    if let Some(texts) = texts {
        texts.put(document.doc_id, document.revision, "text").await.unwrap();
    }
}

#[tokio::test]
async fn place_belongs_to_the_first_that_claims_it() {
    let (one, other, texts) = (catalog(), catalog(), texts());
    for _ in 0..2 {
        assert_eq!(one.claim_texts(&texts).await.unwrap(), TextOwner::This);
        assert_eq!(other.claim_texts(&texts).await.unwrap(), TextOwner::Other);
    }
    add(&other, None, 1).await;
    assert_eq!(other.claim_texts(&texts).await.unwrap(), TextOwner::Other);
}

#[tokio::test]
async fn texts_of_before_are_claimed_by_the_knowledge_base_whose_they_are() {
    let (one, other, texts) = (catalog(), catalog(), texts());
    add(&one, Some(&texts), 1).await;
    add(&other, None, 2).await;
    for catalog in [&other, &self::catalog()] {
        assert_eq!(catalog.claim_texts(&texts).await.unwrap(), TextOwner::Unknown);
    }
    assert_eq!(one.claim_texts(&texts).await.unwrap(), TextOwner::This);
    assert_eq!(other.claim_texts(&texts).await.unwrap(), TextOwner::Other);
}

/// The target of a migration has copies of the records, and gets an id of its own.
#[tokio::test]
async fn copy_of_the_records_takes_the_texts_over() {
    let (source, target, texts) = (catalog(), catalog(), texts());
    assert_eq!(source.claim_texts(&texts).await.unwrap(), TextOwner::This);
    add(&source, Some(&texts), 1).await;
    add(&target, Some(&texts), 1).await;
    assert_eq!(target.claim_texts(&texts).await.unwrap(), TextOwner::This);
    assert_eq!(source.claim_texts(&texts).await.unwrap(), TextOwner::Other);
}

/// As where a disk is not mounted: new texts must not go to the empty folder under it.
#[tokio::test]
async fn empty_place_is_not_claimed_for_documents_unless_it_is_said_so() {
    let (catalog, before, blobs) = (catalog(), texts(), Arc::new(InMemory::new()));
    let there = Texts::new(Arc::clone(&blobs) as _);
    add(&catalog, Some(&before), 1).await;
    for _ in 0..2 {
        assert_eq!(catalog.claim_texts(&there).await.unwrap(), TextOwner::Missing);
        // The other place is not known yet, but the first time it is claimed makes no difference to the empty one.
        assert_eq!(catalog.claim_texts(&before).await.unwrap(), TextOwner::This);
    }
    blobs.put(&"knowledge-base".into(), "".into()).await.unwrap();
    assert_eq!(catalog.claim_texts(&there).await.unwrap(), TextOwner::This);
    assert_eq!(self::catalog().claim_texts(&there).await.unwrap(), TextOwner::Other);
}

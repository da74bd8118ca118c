//! Texts and originals as lkr-catalog stores them.

use std::{
    fs::File,
    io::{Seek as _, Write as _},
};

use futures_util::TryStreamExt;
use lkr_catalog::{ExtractedText, Originals, Texts, original_path};
use lkr_domain::{DocId, hex};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

use crate::support::{bytes, store_in_bucket};

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(content).unwrap();
    file.rewind().unwrap();
    file
}

#[tokio::test]
async fn texts_are_stored_copied_listed_and_deleted() {
    let Some(blobs) = store_in_bucket("catalog-texts") else { return };
    let (texts, doc) = (Texts::new(blobs), DocId::new());
    texts.health().await.unwrap();
    let (text, blocks) = ("Größe und Maß, 名前\n".repeat(400_000), bytes(7_000_000));
    let extracted = ExtractedText {
        file: file(&[text.as_bytes(), &blocks].concat()),
        text_bytes: text.len() as u64,
        blocks_bytes: blocks.len() as u64,
    };
    let digests = texts.put_extracted(doc, 1, &extracted).await.unwrap();
    let sha256 = Some(digests.text.as_str());
    assert!(texts.get(doc, 1, sha256).await.unwrap() == text);
    assert!(texts.blocks(doc, 1, digests.blocks.as_deref()).await.unwrap() == blocks);
    let parts = texts.parts(doc, 1, sha256).await.unwrap();
    let parts: Vec<_> = parts.try_collect().await.unwrap();
    assert!(parts.concat() == text.as_bytes());
    assert!(texts.get(doc, 1, Some(&"0".repeat(64))).await.is_err());
    texts.put_notes(doc, 1, "notes").await.unwrap();
    texts.copy(doc, 1, 2, sha256).await.unwrap();
    assert_eq!(texts.notes(doc, 2).await.unwrap().unwrap(), "notes");
    assert_eq!(texts.length(doc, 2).await.unwrap(), text.len() as u64);
    let now = OffsetDateTime::now_utc();
    assert_eq!(texts.written_before(now + Duration::hours(1)).await.unwrap(), [(doc, 1), (doc, 2)]);
    assert!(texts.written_before(now - Duration::hours(1)).await.unwrap().is_empty());
    for revision in [1, 2, 3] {
        texts.delete(doc, revision).await.unwrap();
        assert!(!texts.has_blocks(doc, revision).await.unwrap());
    }
    assert!(texts.stored().await.unwrap().is_empty());
}

#[tokio::test]
async fn originals_are_stored_read_in_ranges_listed_and_deleted() {
    let Some(blobs) = store_in_bucket("catalog-originals") else { return };
    let (originals, now) = (Originals::on(blobs), OffsetDateTime::now_utc());
    let small = b"small".to_vec();
    for (name, content) in [("Größe 100% + 名前 #1?.pdf", bytes(12_000_000)), ("..\u{301}&<x>.txt", small)]
    {
        let path = original_path(DocId::new(), name, now);
        let sha256 = originals.put(&path, &file(&content), content.len() as u64).await.unwrap();
        assert_eq!(sha256, hex(&Sha256::digest(&content)));
        assert_eq!(originals.stored().await.unwrap(), [path.as_str()]);
        let stored = originals.get(&path).await.unwrap().unwrap();
        assert_eq!(stored.size_bytes, content.len() as u64);
        let part: Vec<_> = stored.read(1..4).await.unwrap().try_collect().await.unwrap();
        assert_eq!(part.concat(), &content[1..4]);
        let whole: Vec<_> = stored.read_verified(Some(&sha256)).await.unwrap().try_collect().await.unwrap();
        assert!(whole.concat() == content);
        originals.delete(&path).await.unwrap();
        assert!(originals.get(&path).await.unwrap().is_none());
        originals.delete(&path).await.unwrap();
    }
    assert!(originals.stored().await.unwrap().is_empty());
}

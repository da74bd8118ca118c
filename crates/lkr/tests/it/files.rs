//! Files that are added to a knowledge base.

use std::{fs, path::Path, sync::Arc};

use lkr::{
    ErrorKind, KnowledgeBase, Mode, SearchRequest, Submission,
    files::{FileReader, FileTools},
};
use lkr_vectors::{FailingVectors, MemoryVectors};

use crate::common::{Ground, document, ended, until};

async fn found(kb: &KnowledgeBase, query: &str) -> Vec<String> {
    let found = kb.search(&SearchRequest { mode: Mode::Layered, ..SearchRequest::new(query) }).await.unwrap();
    found.response.results.iter().map(|result| result.text.clone()).collect()
}

fn reader(folder: &Path) -> FileReader {
    FileReader::in_process(folder.join("spool"), FileTools::default()).unwrap()
}

/// A page that is an article, with navigation around it.
fn page() -> String {
    let paragraph = "Io has hundreds of volcanoes, and its ground is coloured by what they throw out. Jupiter pulls \
        at it from one side, its sisters from the other, and what is bent so for ever grows hot inside, \
        so that rock melts and rises.";
    let paragraphs = format!("<p>{paragraph}</p>").repeat(8);
    format!(
        "<html><head><title>Io</title></head><body><nav><a href='/a'>zebrafish</a> <a href='/b'>Home</a></nav>\
         <article><h1>Io</h1>{paragraphs}</article><footer>zebrafish imprint</footer></body></html>"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_surrounds_an_article_is_kept_and_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    let path = folder.path().join("io.html");
    fs::write(&path, page()).unwrap();
    let document = kb.add_file(&reader(folder.path()), &path).await.unwrap();
    assert_eq!((document.title.as_str(), document.source.as_str()), ("io", "file:io.html"));
    let text = kb.text(document.doc_id).await.unwrap().unwrap();
    assert!(text.contains("zebrafish imprint"), "{text}");
    assert!(!found(&kb, "volcanoes").await.is_empty());
    let explained = SearchRequest { explain: true, ..SearchRequest::new("zebrafish") };
    let explained = kb.search(&explained).await.unwrap();
    let legs = &explained.response.explain.as_ref().unwrap().legs;
    assert!(legs.iter().all(|leg| leg.candidates == 0), "no leg of any layer has it: {legs:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_original_comes_back_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    let path = folder.path().join("notes.txt");
    fs::write(&path, "Io has volcanoes.").unwrap();
    let document = kb.add_file(&reader(folder.path()), &path).await.unwrap();
    assert_eq!(document.all_metadata()["original_filename"], "notes.txt");
    assert_eq!(kb.original(&document).await.unwrap().unwrap().size_bytes, 17);
    kb.delete(document.doc_id).await.unwrap();
    assert!(kb.original(&document).await.unwrap().is_none());
}

/// Points of the old revision may wait to be collected; its file is what a user looks for.
#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_original_goes_before_anything_else_is_collected() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), |operation| {
        (operation == "delete").then_some(lkr_vectors::ErrorKind::Internal)
    });
    let ground = Ground { vectors: Arc::new(vectors), ..Ground::default() };
    let kb = ground.open(None).await;
    let path = folder.path().join("notes.txt");
    fs::write(&path, "Io has volcanoes.").unwrap();
    let before = kb.add_file(&reader(folder.path()), &path).await.unwrap();
    let replaced = kb.replace(before.doc_id, document("slate", 3), Submission::default()).await.unwrap();
    ended(&kb, replaced.unwrap().task_id).await;
    until("the file went", async || kb.original(&before).await.unwrap().is_none()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    for (name, bytes, reason) in [
        ("a.pdf", &b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"[..], "contains an image (JPEG)"),
        ("a.txt", b" \n ", "it has no text"),
        ("a.exe", b"x", "files that end with .exe are not supported"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = kb.add_file(&reader(folder.path()), &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

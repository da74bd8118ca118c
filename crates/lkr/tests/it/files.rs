//! Files that are added to a knowledge base.

use std::{fs, path::Path};

use lkr::{
    ErrorKind, KnowledgeBase, Mode, SearchRequest,
    files::{FileReader, FileTools},
};

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

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    for (name, bytes, reason) in [
        ("a.pdf", &b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"[..], "holds a picture (JPEG)"),
        ("a.txt", b" \n ", "it has no text"),
        ("a.exe", b"x", "files that end with .exe are not read"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = kb.add_file(&reader(folder.path()), &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

//! Adding files to a knowledge base.

use std::{fs, path::Path, sync::Arc, time::Duration};

use lkr::{
    ErrorKind, KnowledgeBase, Mode, SearchRequest, Submission,
    files::{FileErrorKind, FilePlugins, FileReader, FileSource, FileTools, refusal},
};
use lkr_vectors::{FailingVectors, MemoryVectors};

use crate::common::{TestStores, document, wait_for_task, wait_until};

async fn search_texts(kb: &KnowledgeBase, query: &str) -> Vec<String> {
    let found = kb.search(&SearchRequest { mode: Mode::Layered, ..SearchRequest::new(query) }).await.unwrap();
    found.response.results.iter().map(|result| result.text.clone()).collect()
}

fn reader(folder: &Path) -> FileReader {
    FileReader::in_process(folder.join("spool"), FileTools::default()).unwrap()
}

/// A page with an article and navigation around it.
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
async fn page_furniture_is_kept_and_not_searchable() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    let path = folder.path().join("io.html");
    fs::write(&path, page()).unwrap();
    let document = kb.add_file(&reader(folder.path()), &path).await.unwrap();
    assert_eq!((document.title.as_str(), document.source.as_str()), ("io", "file:io.html"));
    let text = kb.text(document.doc_id).await.unwrap().unwrap();
    assert!(text.contains("zebrafish imprint"), "{text}");
    assert!(!search_texts(&kb, "volcanoes").await.is_empty());
    let explained = SearchRequest { explain: true, ..SearchRequest::new("zebrafish") };
    let explained = kb.search(&explained).await.unwrap();
    let legs = &explained.response.explain.as_ref().unwrap().legs;
    assert!(legs.iter().all(|leg| leg.candidates == 0), "a leg returned furniture: {legs:?}");
}

/// A named pipe would be opened when a program writes to it, and a device may have no end.
#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    let reader = reader(folder.path());
    let pipe = folder.path().join("pipe.txt");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [pipe.as_path(), folder.path(), Path::new("/dev/zero"), Path::new("/nowhere/a.txt")] {
        let adding = tokio::time::timeout(Duration::from_secs(10), kb.add_file(&reader, path));
        let error = adding.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn original_is_stored_and_deleted_with_its_document() {
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

/// The file of the old revision is deleted first, because users look for it.
#[tokio::test(flavor = "multi_thread")]
async fn replaced_original_is_deleted_although_points_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let vectors = FailingVectors::new(Arc::new(MemoryVectors::default()), |operation| {
        (operation == "delete").then_some(lkr_vectors::ErrorKind::Internal)
    });
    let stores = TestStores { vectors: Arc::new(vectors), ..TestStores::default() };
    let kb = stores.open(None).await;
    let path = folder.path().join("notes.txt");
    fs::write(&path, "Io has volcanoes.").unwrap();
    let before = kb.add_file(&reader(folder.path()), &path).await.unwrap();
    let replaced = kb.replace(before.doc_id, document("slate", 3), Submission::default()).await.unwrap();
    wait_for_task(&kb, replaced.unwrap().task_id).await;
    wait_until("the file is deleted", async || kb.original(&before).await.unwrap().is_none()).await;
}

/// A PDF file with one page that only paints a square.
const PICTURE: &[u8] = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
    2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
    3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R>>endobj\n\
    4 0 obj<</Length 25>>stream\n0 g 100 100 200 200 re f \nendstream endobj\n\
    trailer<</Root 1 0 R>>\n%%EOF";

#[tokio::test(flavor = "multi_thread")]
async fn refused_file_has_a_typed_reason() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    let name: Vec<u8> = "EncryptedPackage".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let encrypted = [&b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"[..], &[0; 600], &name].concat();
    for (name, bytes, kind, reason) in [
        ("a.pdf", PICTURE, FileErrorKind::Pictures, "set parsers.ocr.plugin to tesseract"),
        ("a.docx", &encrypted, FileErrorKind::Encrypted, "protected by a password"),
        ("b.docx", b"PK\x03\x04", FileErrorKind::Damaged, "damaged or incomplete"),
        ("b.pdf", b"%PDF-1.4\n", FileErrorKind::Damaged, "damaged or incomplete"),
        ("a.html", b"<img src=a.png>", FileErrorKind::Pictures, "no visible text"),
        ("a.txt", &[0; 50], FileErrorKind::Damaged, "binary data"),
        ("c.pdf", b"<html>", FileErrorKind::Input, "contains an HTML page"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let source = FileSource {
            file_name: name.to_owned(),
            media_type: None,
            file: fs::File::open(&path).unwrap(),
            length: bytes.len() as u64,
        };
        let error = reader(folder.path()).read(source, &FilePlugins::default()).await.unwrap_err();
        assert_eq!((error.kind(), refusal(&error)), (ErrorKind::Invalid, Some(kind)), "{name}: {error}");
        assert!(error.to_string().contains(reason), "{error}");
        let error = kb.add_file(&reader(folder.path()), &path).await.unwrap_err();
        assert_eq!(refusal(&error), Some(kind), "{name}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_file_is_refused_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::builder().build().await.unwrap();
    for (name, bytes, reason) in [
        ("a.pdf", &b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"[..], "contains an image (JPEG)"),
        ("a.txt", b" \n ", "the file contains no text"),
        ("a.exe", b"x", "files that end with .exe are not supported"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = kb.add_file(&reader(folder.path()), &path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
}

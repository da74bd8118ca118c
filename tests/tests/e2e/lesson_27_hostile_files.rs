//! Malicious files: bombs, deep nesting, wrong types. Each is rejected or parsed in bounded time, the server's memory
//! stays small, and searches work meanwhile.

use std::{
    io::{Cursor, Write},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use lkr_tests::Server;
use serde_json::json;

const MIB: u64 = 1024 * 1024;

/// The longest time for one file. The limits of parsers are seconds of the processor; the rest is for busy machines, on which readers of
/// files, which have a lower priority, get a part of it.
const TIMEOUT: Duration = Duration::from_secs(150);

/// After this time a parser returns the text that it has read.
const SOFT_DEADLINE: Duration = Duration::from_secs(10);

#[test]
fn lesson_27_malicious_files_do_not_harm_the_server() {
    let server = Server::start();
    let _ = server.upload_and_wait("moons.txt", b"Io has volcanoes.");
    let before = server.memory();
    let (stop, searches) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        let searching = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let found = server
                    .search(&json!({"query": format!("volcanoes {}", searches.load(Ordering::Relaxed))}));
                assert_eq!(found["results"].as_array().unwrap().len(), 1);
                searches.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        // Stops the searches even if an assertion fails, so that the failure is reported.
        let end = SetOnDrop(&stop);
        for (name, bytes, reason) in hostile() {
            let (started, searched) = (Instant::now(), searches.load(Ordering::Relaxed));
            let response = server.upload(name, &bytes);
            let duration = started.elapsed();
            if response.status == 202 && duration > SOFT_DEADLINE {
                // On a slow machine the time limit comes before the size limit; then the text read so far is kept.
                let task = server.wait_for_task(response.data()["task_id"].as_str().unwrap());
                let path = format!("/documents/{}", task["doc_id"].as_str().unwrap());
                assert_eq!(server.call("DELETE", &path, None, Some(server.admin())).status, 200);
            } else {
                let status = if reason == TOO_MUCH_TEXT { 413 } else { 400 };
                assert_eq!((response.code(), response.status), (1001, status), "{name}: {}", response.json);
                assert!(response.message().contains(reason), "{name}: {}", response.message());
            }
            assert!(duration < TIMEOUT, "{name} took {duration:?}");
            assert!(
                duration < Duration::from_secs(1) || searches.load(Ordering::Relaxed) > searched,
                "{name}: no search finished meanwhile"
            );
            let now = server.memory();
            assert!(now < before + 50 * MIB, "{name}: {before} bytes before, {now} now");
        }
        drop(end);
        searching.join().unwrap();
    });
    assert_eq!(server.list_all("/documents").len(), 1, "a malicious file was kept");
    let uploads = server.data_dir().join("uploads");
    let stored = count_files(&uploads);
    assert_eq!(stored, 1, "a malicious file was stored");
}

#[test]
fn lesson_27_unusual_but_valid_files_are_read() {
    let server = Server::start();
    let deep =
        ["<div>".repeat(100_000), "<p>hello deep world</p>".to_owned(), "</div>".repeat(100_000)].concat();
    let nested = format!("<w:sdt><w:sdtContent>{PARAGRAPH}</w:sdtContent></w:sdt>");
    for (name, bytes, word) in [
        ("deep.html", deep.into_bytes(), "deep"),
        ("nested.docx", docx(&body(&nested), ""), "hostile"),
        ("nul.txt", b"he\x00llo nul\x00 world".to_vec(), "world"),
    ] {
        let _ = server.upload_and_wait(name, &bytes);
        let found = server.search(&json!({"query": word}));
        assert!(!found["results"].as_array().unwrap().is_empty(), "{name}");
    }
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

const TOO_MUCH_TEXT: &str = "64 MiB of text";

/// Names, bytes, and a part of the error message.
fn hostile() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let laughs: String =
        (0..10).map(|n| format!("<!ENTITY e{} \"{}\">", n + 1, format!("&e{n};").repeat(10))).collect();
    let laughs = format!("<!DOCTYPE d [<!ENTITY e0 \"ha\">{laughs}]>");
    vec![
        (
            "picture.pdf",
            [&b"\xff\xd8\xff\xe0\x00\x10JFIF\x00"[..], &[7; 5000]].concat(),
            "contains an image (JPEG)",
        ),
        ("page.pdf", b"<html><body>not a pdf</body></html>".to_vec(), "contains an HTML page"),
        ("zeros.docx", bomb(600), "cannot be read"),
        ("paragraphs.docx", paragraphs(), TOO_MUCH_TEXT),
        ("laughs.docx", docx(&body("<w:p><w:r><w:t>&e10;</w:t></w:r></w:p>"), &laughs), "document type"),
        ("pages.pdf", page_bomb(), "can be read"),
        ("half.pdf", b"%PDF-1.7\n".to_vec(), "cannot be read"),
        ("empty.html", b"<script>".repeat(100_000), "no text"),
    ]
}

const PARAGRAPH: &str = "<w:p><w:r><w:t>hello hostile world</w:t></w:r></w:p>";

fn body(content: &str) -> String {
    let space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    format!("<w:document xmlns:w=\"{space}\"><w:body>{content}</w:body></w:document>")
}

fn docx(document: &str, before: &str) -> Vec<u8> {
    package(|zip| {
        zip.write_all(before.as_bytes())?;
        zip.write_all(document.as_bytes())
    })
}

/// A document of this many MiB of zeros, which compress to a thousandth of that size.
fn bomb(mib: usize) -> Vec<u8> {
    package(|zip| (0..mib).try_for_each(|_| zip.write_all(&[0; MIB as usize])))
}

fn package(document: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Vec<u8> {
    let relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument";
    let relations = format!(
        "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\">\
         <Relationship Id=\"r\" Type=\"{relation}\" Target=\"word/document.xml\"/></Relationships>"
    );
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    zip.start_file("_rels/.rels", zip::write::SimpleFileOptions::default()).unwrap();
    zip.write_all(relations.as_bytes()).unwrap();
    zip.start_file("word/document.xml", zip::write::SimpleFileOptions::default()).unwrap();
    document(&mut zip).unwrap();
    zip.finish().unwrap().into_inner()
}

/// A document that exceeds the text limit with small paragraphs.
fn paragraphs() -> Vec<u8> {
    let document = body("|");
    let (head, tail) = document.split_once('|').unwrap();
    let many = PARAGRAPH.repeat(1_000);
    package(|zip| {
        zip.write_all(head.as_bytes())?;
        (0..3_500).try_for_each(|_| zip.write_all(many.as_bytes()))?;
        zip.write_all(tail.as_bytes())
    })
}

/// A PDF whose page tree refers to itself.
fn page_bomb() -> Vec<u8> {
    let mut file = b"%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n".to_vec();
    for number in 2..42 {
        let kids = format!("{} 0 R ", number + 1).repeat(10);
        file.extend_from_slice(
            format!("{number} 0 obj\n<</Type/Pages/Count 10/Kids[{kids}]>>\nendobj\n").as_bytes(),
        );
    }
    file.extend_from_slice(b"trailer\n<</Size 43/Root 1 0 R>>\n%%EOF\n");
    file
}

fn count_files(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}

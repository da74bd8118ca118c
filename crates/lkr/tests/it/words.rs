//! Every word of a document finds it, and every heading by its words, whatever kind of file it came in.

mod written;

use std::{fs, io::Write as _, path::Path};

use lkr::{
    DocumentWithNodes, KnowledgeBase, NewDocument, Parsed, SearchRequest,
    files::{FilePlugins, FileReader, FileSource, FileTools, Format},
};
use lkr_layers::{LayerOptions, WordCoverage, layer, word_coverage};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestCaseError, TestRunner},
};
use written::{Part, Written};

/// The files of each kind that are read on every run; reading all PDF files takes minutes.
const PDF_FILES: usize = 24;

fn reader(folder: &Path) -> FileReader {
    FileReader::in_process(folder.join("spool"), FileTools::default()).unwrap()
}

async fn read(reader: &FileReader, name: &str, bytes: &[u8]) -> Result<Parsed, lkr::Error> {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let length = bytes.len() as u64;
    let source = FileSource { file_name: name.to_owned(), media_type: None, file, length };
    Ok(reader.read(source, &FilePlugins::default()).await?.read().unwrap())
}

/// Which words of a file a search finds, if its name is its title.
fn coverage(parsed: &Parsed, title: &str) -> WordCoverage {
    let options = LayerOptions { title_is_file_name: true, ..LayerOptions::default() };
    word_coverage(parsed, &layer(parsed, title, &options))
}

async fn found(kb: &KnowledgeBase, query: &str) -> bool {
    !kb.search(&SearchRequest::new(query)).await.unwrap().response.results.is_empty()
}

/// The paths of all nodes and chunks of the only document.
async fn paths(kb: &KnowledgeBase, document: &lkr::Document) -> Vec<Vec<String>> {
    let DocumentWithNodes { l2, l3, .. } = kb.detail(document.doc_id).await.unwrap().unwrap();
    let chunks = kb.chunks(document.doc_id, 0, 100).await.unwrap().unwrap().items;
    let chunks = chunks.into_iter().map(|chunk| chunk.value.path);
    l2.into_iter().chain(l3).map(|node| node.value.path).chain(chunks).collect()
}

/// A document with one top-level heading and two sections.
fn zebras() -> Written {
    let text = "They graze on the plains in herds and run from what hunts them there.";
    let section = |name: &str| [Part::Heading(2, name.to_owned()), Part::Paragraph(text.to_owned())];
    let mut parts = vec![Part::Heading(1, "My zebra favorites".to_owned()), Part::Paragraph(text.to_owned())];
    parts.extend(section("Plains").into_iter().chain(section("Mountains")));
    Written { parts }
}

#[tokio::test(flavor = "multi_thread")]
async fn heading_of_an_uploaded_file_is_found_and_begins_its_paths() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in zebras().files("simple").into_iter().filter(|(name, _)| !name.ends_with(".txt")) {
        let kb = KnowledgeBase::builder().build().await.unwrap();
        let path = folder.path().join(&name);
        fs::write(&path, bytes).unwrap();
        let document = kb.add_file(&reader(folder.path()), &path).await.unwrap();
        assert_eq!(document.title, "simple");
        for query in ["zebra", "My zebra favorites", "favorite"] {
            assert!(found(&kb, query).await, "{name}: {query}");
        }
        let paths = paths(&kb, &document).await;
        assert!(paths.iter().all(|path| path[0] == "My zebra favorites"), "{name}: {paths:?}");
        assert!(paths.contains(&vec!["My zebra favorites".to_owned(), "Plains".to_owned()]), "{name}");
    }
}

#[tokio::test]
async fn heading_of_a_document_with_another_title_is_found_and_begins_its_paths() {
    let text = zebras().markdown();
    for (title, is_heading) in [("Animals", false), ("", true), (" my Zebra  favorites", true)] {
        let kb = KnowledgeBase::builder().build().await.unwrap();
        let new = NewDocument { title: title.to_owned(), text: text.clone(), ..NewDocument::default() };
        let document = kb.add(new).await.unwrap();
        assert!(found(&kb, "zebra").await, "{title:?}");
        let paths = paths(&kb, &document).await;
        let begins = |path: &Vec<String>| path.first().is_some_and(|first| first == "My zebra favorites");
        assert!(paths.iter().all(|path| begins(path) != is_heading), "{title:?}: {paths:?}");
    }
}

fn word() -> impl Strategy<Value = String> {
    // Capitals, accents, compounds and numbers are words, and letters without spaces between words.
    prop_oneof![
        12 => "[a-z]{2,9}",
        2 => "[A-Z][a-z]{1,7}[A-Z]?[a-z]{2,4}",
        1 => "[a-z]{2,5}[äéøß][a-z]{0,3}",
        1 => "[a-z]{2,5}[-_.][a-z]{2,5}",
        1 => "[0-9]{1,3}\\.[0-9]{2}",
    ]
}

fn words(lengths: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    vec(word(), lengths).prop_map(|words| words.join(" "))
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        2 => (1_u8..5, words(1..6)).prop_map(|(level, title)| Part::Heading(level, title)),
        3 => words(5..60).prop_map(Part::Paragraph),
        1 => vec(words(1..9), 1..6).prop_map(Part::List),
    ]
}

/// Often with a heading alone at its top, and with headings that nothing follows.
fn written() -> impl Strategy<Value = Written> {
    let top = prop::option::of(words(1..7).prop_map(|title| Part::Heading(1, title)));
    (top, vec(part(), 1..12))
        .prop_map(|(top, parts)| Written { parts: top.into_iter().chain(parts).collect() })
}

#[test]
fn every_word_of_a_written_file_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let reader = runtime.block_on(async { reader(folder.path()) });
    let mut runner = TestRunner::new(Config { cases: 48, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(written(), "[a-z]{1,8}"), |(written, title)| {
        for (name, bytes) in written.files(&title) {
            let parsed = runtime.block_on(read(&reader, &name, &bytes));
            let parsed = parsed.map_err(|error| TestCaseError::fail(format!("{name}: {error}")))?;
            let missing = coverage(&parsed, &title).missing;
            prop_assert!(missing.is_empty(), "{}: no search finds {:?} of {:?}", name, missing, parsed);
        }
        Ok(())
    });
    outcome.unwrap();
}

/// The same through the stores and the search.
#[test]
fn every_heading_and_word_of_a_stored_document_is_found() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config { cases: 8, failure_persistence: None, ..Config::default() });
    let outcome = runner.run(&(written(), "|[a-z]{1,8}"), |(written, title)| {
        let missing = runtime.block_on(async {
            let kb = KnowledgeBase::builder().build().await.unwrap();
            let text = written.markdown();
            kb.add(NewDocument { title, text, ..NewDocument::default() }).await.unwrap();
            let mut missing = Vec::new();
            for query in written.headings().chain(written.words()).filter(|query| is_searchable(query)) {
                if !found(&kb, query).await {
                    missing.push(query.to_owned());
                }
            }
            missing
        });
        prop_assert!(missing.is_empty(), "no search finds {:?}", missing);
        Ok(())
    });
    outcome.unwrap();
}

/// Whether a query has a word that is no stop word of any language that a text may be taken for.
fn is_searchable(query: &str) -> bool {
    let is_stop_word = |word: &str| {
        [
            "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "pl", "cs",
            "sk", "sl", "hr", "lv", "lt", "et", "ca",
        ]
        .into_iter()
        .filter_map(lkr_text::Language::from_code)
        .any(|language| lkr_text::is_stop_word(word, language))
    };
    query.split([' ', '-', '_', '.']).any(|word| !is_stop_word(word))
}

/// Reads the files of a folder of the real data, at most `limit` spread over it, and counts words that no search finds.
async fn check_folder(kind: &str, limit: usize) {
    let Some(folder) = lkr_test_support::real_data(&format!("data/files/{kind}")) else { return };
    let spool = tempfile::tempdir().unwrap();
    let reader = reader(spool.path());
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut read_files, mut words, mut incomplete) = (0, 0, Vec::new());
    for path in files.iter().step_by(files.len().div_ceil(limit)) {
        let name = path.file_name().unwrap().to_str().unwrap();
        // Some files are damaged or protected on purpose.
        let Ok(parsed) = read(&reader, name, &fs::read(path).unwrap()).await else { continue };
        let WordCoverage { words: all, missing } = coverage(&parsed, lkr::stem_and_suffix(name).0);
        read_files += 1;
        words += all;
        if !missing.is_empty() {
            incomplete.push(format!("{name}: {missing:?}"));
        }
    }
    assert!(read_files > 0, "{kind}: no file can be read");
    let found = format_args!("{kind}: of {words} words in {read_files} files no search finds");
    assert!(incomplete.is_empty(), "{found} {incomplete:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_word_of_real_files_is_found() {
    for kind in ["md", "txt", "docx", "html"] {
        check_folder(kind, usize::MAX).await;
    }
    check_folder("pdf", PDF_FILES).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "reads all real PDF files, which takes minutes"]
async fn every_word_of_all_real_pdf_files_is_found() {
    assert_eq!(Format::from_file_name("a.pdf"), Some(Format::Pdf));
    check_folder("pdf", usize::MAX).await;
}

//! Reading real files in worker processes, which can open nothing themselves.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use lkr::files::{Extracted, FileErrorKind, FilePlugins, FileReader, FileSource, FileTools, Passage};
use lkr_test_support::{note_skip, real_data};

/// How many files of each kind are read.
const FILES: usize = 12;

fn worker_program() -> PathBuf {
    let tests = env::current_exe().unwrap();
    tests.ancestors().nth(2).unwrap().join("examples/parse_worker")
}

fn readers(spool: &Path, tools: &FileTools) -> [FileReader; 2] {
    let in_workers =
        FileReader::in_workers(worker_program(), Vec::new(), spool.join("workers"), tools.clone());
    [in_workers.unwrap(), FileReader::in_process(spool.join("process"), tools.clone()).unwrap()]
}

async fn read(reader: &FileReader, path: &Path, plugins: &FilePlugins) -> lkr::Result<Extracted> {
    let file = fs::File::open(path).unwrap();
    let length = file.metadata().unwrap().len();
    let file_name = path.file_name().unwrap().to_string_lossy().into_owned();
    reader.read(FileSource { file_name, media_type: None, file, length }, plugins).await
}

/// Checks that workers read files of a kind as this process does; returns how many had a text.
async fn compare(kind: &str, tools: FileTools, plugins: &FilePlugins) -> usize {
    let Some(folder) = real_data(&format!("data/files/{kind}")) else { return 1 };
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let spool = tempfile::tempdir().unwrap();
    let [in_workers, in_process] = readers(spool.path(), &tools);
    let mut with_text = 0;
    for path in paths.iter().take(FILES) {
        let outcome = async |reader: &FileReader| match read(reader, path, plugins).await {
            Ok(extracted) => extracted.read().map(|parsed| (parsed.text, parsed.warnings)).unwrap(),
            Err(error) => (String::new(), vec![error.reason()]),
        };
        let (in_worker, here) = (outcome(&in_workers).await, outcome(&in_process).await);
        assert_eq!(in_worker, here, "{}", path.display());
        with_text += usize::from(!here.0.trim().is_empty());
    }
    with_text
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_read_every_kind_of_file_as_this_process_does() {
    for kind in ["txt", "md", "html", "docx", "pdf"] {
        assert!(compare(kind, FileTools::default(), &FilePlugins::default()).await > 0, "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_read_files_with_pdfium() {
    let Some(pdfium) = env::var_os("LKR_PDFIUM_LIBRARY").map(PathBuf::from) else {
        return note_skip("LKR_PDFIUM_LIBRARY is not set");
    };
    let tools = FileTools { pdfium: Some(pdfium), ..FileTools::default() };
    let plugins = FilePlugins { pdf: "pdfium".to_owned(), ..FilePlugins::default() };
    assert!(compare("pdf", tools, &plugins).await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_show_pages_as_this_process_does() {
    let pdfium = env::var_os("LKR_PDFIUM_LIBRARY").map(PathBuf::from);
    let (Some(pdfium), Some(folder)) = (pdfium, real_data("data/files/pdf")) else {
        return note_skip("LKR_PDFIUM_LIBRARY is not set, or the files are absent");
    };
    let tools = FileTools { pdfium: Some(pdfium), ..FileTools::default() };
    let spool = tempfile::tempdir().unwrap();
    let readers = readers(spool.path(), &tools);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut shown = 0;
    for path in paths.iter().take(FILES) {
        let source = || {
            let file = fs::File::open(path).unwrap();
            let length = file.metadata().unwrap().len();
            FileSource { file_name: "a.pdf".to_owned(), media_type: None, file, length }
        };
        let passages = || vec![Passage { start: 7, text: "the of and".to_owned() }];
        let show = async |reader: &FileReader| {
            let image = reader.page_image("", source(), 1, 600).await.map_err(|error| error.reason());
            let placed =
                reader.page_places("", source(), 1, passages()).await.map_err(|error| error.reason());
            (image, placed)
        };
        let (in_worker, here) = (show(&readers[0]).await, show(&readers[1]).await);
        assert!(in_worker == here, "{}: {:?}", path.display(), in_worker.1);
        shown += usize::from(here.0.is_ok());
    }
    assert!(shown > FILES / 2, "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_damaged_file_is_refused_by_the_worker() {
    let Some(pdfium) = env::var_os("LKR_PDFIUM_LIBRARY").map(PathBuf::from) else {
        return note_skip("LKR_PDFIUM_LIBRARY is not set");
    };
    let tools = FileTools { pdfium: Some(pdfium), ..FileTools::default() };
    let spool = tempfile::tempdir().unwrap();
    let [in_workers, _] = readers(spool.path(), &tools);
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, b"%PDF-1.4\n%%EOF\n").unwrap();
    let source = FileSource { file_name: "a.pdf".to_owned(), media_type: None, file, length: 15 };
    let error = in_workers.page_image("", source, 1, 600).await.unwrap_err();
    assert_eq!(lkr::files::refusal(&error), Some(FileErrorKind::Damaged), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_recognise_text_in_images() {
    const SCAN: &str = "data/files/pdf/markitdown__MEDRPT-2024-PAT-3847_medical_report_scan.pdf";
    let path = env::var_os("PATH").unwrap_or_default();
    let tesseract =
        env::split_paths(&path).map(|folder| folder.join("tesseract")).find(|file| file.is_file());
    let (Some(tesseract), Some(scan)) = (tesseract, real_data(SCAN)) else {
        return note_skip("tesseract is not installed, or the scanned file is absent");
    };
    let tools = FileTools { tesseract: Some(tesseract), ..FileTools::default() };
    let ocr_languages = vec!["en".to_owned(), "xx".to_owned()];
    let plugins = FilePlugins { ocr: "tesseract".to_owned(), ocr_languages, ..FilePlugins::default() };
    let spool = tempfile::tempdir().unwrap();
    let [in_workers, _] = readers(spool.path(), &tools);
    let parsed = read(&in_workers, &scan, &plugins).await.unwrap().read().unwrap();
    assert!(parsed.text.to_lowercase().contains("patient"), "{}", parsed.text);
    assert!(parsed.warnings.iter().any(|warning| warning.contains("xx")), "{:?}", parsed.warnings);
}

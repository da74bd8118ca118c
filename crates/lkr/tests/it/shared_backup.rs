//! Backups of stores that several processes use.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use lkr::{
    DocId, DocumentChange, ErrorKind, Folders, KnowledgeBase, ListFilter, NewDocument, OpenOptions,
    OtherStores, Scope, SearchRequest, SearchResponse, SharedState,
    backup::{restore, verify},
    doctor::{DoctorOptions, examine},
    files::{FileReader, FileTools},
};
use lkr_state::{MemoryQueue, MemoryState, ProcessId, ScanOrder, StateStore as _};
use lkr_vectors::MemoryVectors;
use object_store::memory::InMemory;
use tempfile::TempDir;

use crate::common::{count_blobs, wait_until};

/// Stores outside of the folders of the processes that use them.
struct Shared {
    vectors: Arc<MemoryVectors>,
    records: Arc<MemoryState>,
    queue: Arc<MemoryQueue>,
    blobs: Arc<InMemory>,
    folder: TempDir,
}

impl Shared {
    fn new() -> Self {
        Self {
            vectors: Arc::default(),
            records: Arc::default(),
            queue: Arc::default(),
            blobs: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    /// Another process on the stores.
    async fn open(&self, name: &str) -> KnowledgeBase {
        let state = SharedState {
            records: Arc::clone(&self.records) as _,
            queue: Arc::clone(&self.queue) as _,
            process: ProcessId::new(),
            export: Arc::clone(&self.records) as _,
        };
        let stores = OtherStores {
            vectors: Some(Arc::clone(&self.vectors) as _),
            state: Some(state),
            blobs: Some(Arc::clone(&self.blobs) as _),
        };
        let options = OpenOptions::new(self.folder.path().join(name));
        KnowledgeBase::open_with(OpenOptions { stores, ..options }).await.unwrap()
    }

    async fn stored_files(&self) -> usize {
        count_blobs(&*self.blobs).await
    }
}

fn document(name: &str) -> NewDocument {
    NewDocument {
        text: format!(
            "# {name}\n\nWhat there is to say of {name}.\n\n## Rocks\n\n{name} rests on granite.\n"
        ),
        ..NewDocument::default()
    }
}

async fn restored(archive: &[u8], to: &Path) -> KnowledgeBase {
    let done = restore(archive, &Folders::new(to)).await.unwrap();
    assert!(done.problems.is_empty(), "{done:?}");
    KnowledgeBase::open(to).await.unwrap()
}

/// What the doctor finds in a knowledge base that was just closed, which may still have reads in progress.
async fn findings(folder: &Path) -> Vec<String> {
    let options = DoctorOptions { folders: Folders::new(folder), repair: false, readers: Vec::new() };
    let mut report = None;
    wait_until("the store is closed", async || match examine(options.clone()).await {
        Err(error) if error.kind() == ErrorKind::Conflict => false,
        examined => {
            report = Some(examined.unwrap());
            true
        }
    })
    .await;
    report.unwrap().report.findings.into_iter().map(|finding| finding.what).collect()
}

/// The response of a search, without its duration.
async fn response(kb: &KnowledgeBase, query: &str) -> SearchResponse {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    SearchResponse { took_ms: 0, ..(*found.response).clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_has_what_another_process_deletes_while_it_is_written() {
    let shared = Shared::new();
    // The first process collects the garbage of all.
    let other = shared.open("two").await;
    let kb = shared.open("one").await;
    let file = shared.folder.path().join("moon.md");
    std::fs::write(&file, "# Titan\n\nTitan has lakes of methane.").unwrap();
    let reader = FileReader::in_process(shared.folder.path().join("spool"), FileTools::default()).unwrap();
    let titan = kb.add_file(&reader, &file).await.unwrap();
    let mut ids = vec![titan.doc_id];
    for name in ["Io", "Europa"] {
        ids.push(kb.add(document(name)).await.unwrap().doc_id);
    }
    let stats = kb.stats(&Scope::All).await.unwrap();
    let before = [response(&kb, "methane lakes").await, response(&kb, "Europa granite").await];

    let backup = kb.backup().await.unwrap();
    for id in &ids {
        other.delete(*id).await.unwrap();
    }
    // Long enough for both processes to collect what they could.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut archive = Vec::new();
    let done = backup.write(&mut archive).await.unwrap();
    assert!(done.problems.is_empty(), "{done:?}");
    assert_eq!(verify(&archive[..]).await.unwrap(), done);
    assert!(shared.stored_files().await > 0);
    drop(backup);
    wait_until("the deleted documents are collected", async || shared.stored_files().await == 0).await;
    assert!(!shared.folder.path().join("one/backup.tmp").exists(), "the temporary copy is deleted");
    let records = shared.records.scan("gc-pause/", None, ScanOrder::Ascending, 10).await.unwrap();
    assert!(records.is_empty(), "the pause ends with the backup");

    let target = tempfile::tempdir().unwrap();
    let copy = restored(&archive, target.path()).await;
    assert_eq!(copy.stats(&Scope::All).await.unwrap(), stats);
    for (query, before) in ["methane lakes", "Europa granite"].into_iter().zip(before) {
        assert_eq!(response(&copy, query).await, before);
    }
    let text = copy.text(ids[1]).await.unwrap().unwrap();
    assert!(text.contains("What there is to say of Io."), "{text}");
    let titan = copy.document(ids[0]).await.unwrap().unwrap();
    assert_eq!(copy.original(&titan).await.unwrap().unwrap().size_bytes, 36);
}

/// Records, points and texts of a backup belong together whatever other processes do while it is made.
#[tokio::test(flavor = "multi_thread")]
async fn backup_amid_changes_of_another_process_is_of_one_moment() {
    let shared = Shared::new();
    let (kb, other) = (shared.open("one").await, shared.open("two").await);
    let mut ids: Vec<DocId> = Vec::new();
    for n in 0..40 {
        ids.push(kb.add(document(&format!("Moon {n}"))).await.unwrap().doc_id);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let changing = tokio::spawn({
        let stop = Arc::clone(&stop);
        async move {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                let id = ids[n % ids.len()];
                match n % 3 {
                    0 => {
                        let metadata = [("step".to_owned(), Some(n.to_string()))].into();
                        let change = DocumentChange { metadata, ..DocumentChange::default() };
                        assert!(other.change(id, change).await.unwrap().is_some());
                    }
                    1 => {
                        let change = DocumentChange {
                            category: Some(format!("c{}", n % 7)),
                            ..DocumentChange::default()
                        };
                        assert!(other.change(id, change).await.unwrap().is_some());
                    }
                    _ => {
                        other.delete(id).await.unwrap();
                        let place = n % ids.len();
                        ids[place] = other.add(document(&format!("New moon {n}"))).await.unwrap().doc_id;
                    }
                }
                n += 1;
            }
            n
        }
    });
    for _ in 0..4 {
        let mut archive = Vec::new();
        let done = kb.backup().await.unwrap().write(&mut archive).await.unwrap();
        assert!(done.problems.is_empty(), "{done:?}");
        let target = tempfile::tempdir().unwrap();
        let copy = restored(&archive, target.path()).await;
        let documents = copy.list(&Scope::All, &ListFilter::default(), None, 100).await.unwrap().items.len();
        assert!((39..=41).contains(&documents), "{documents}");
        copy.close().await;
        assert_eq!(findings(target.path()).await, Vec::<String>::new());
    }
    stop.store(true, Ordering::Relaxed);
    assert!(changing.await.unwrap() > 40);
}

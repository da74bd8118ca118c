//! A closed knowledge base that tests damage and repair.

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use lkr::{
    Document, Folders, IngestOptions, KnowledgeBase, Layer, NewDocument, PointId, SearchRequest,
    doctor::{DoctorOptions, DoctorReport, examine},
    ports::{
        object_store::{ObjectStore, local::LocalFileSystem},
        vectors::{Condition, Filter},
    },
};
use lkr_catalog::Originals;
use lkr_models::MemoryEmbedder;
use lkr_store_lmdb::{LmdbOptions, LmdbStore};

pub(crate) const DOCUMENTS: u32 = 6;

/// A closed knowledge base in a folder.
pub(crate) struct ClosedKb {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) documents: Vec<Document>,
}

pub(crate) fn text(n: u32) -> String {
    let section = |part: u32| {
        format!("## Part {part} of {n}\n\nThe whale number {n} rests at place {part}. It sings.\n")
    };
    format!("# Whale {n}\n\n{}", (0..5).map(section).collect::<Vec<_>>().join("\n"))
}

impl ClosedKb {
    pub(crate) async fn new() -> Self {
        let mut closed = Self { folder: tempfile::tempdir().unwrap(), documents: Vec::new() };
        let kb = closed.open().await;
        for n in 0..DOCUMENTS {
            let document =
                NewDocument { text: text(n), source: format!("source {n}"), ..NewDocument::default() };
            closed.documents.push(kb.add(document).await.unwrap());
        }
        kb.close().await;
        closed
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn store(&self) -> LmdbStore {
        // A knowledge base that was just closed may still have reads in progress.
        for _ in 0..1_000 {
            match LmdbStore::open(&self.path("store"), LmdbOptions::default()) {
                Err(error) if error.is_retryable() => std::thread::sleep(Duration::from_millis(10)),
                opened => return opened.unwrap(),
            }
        }
        unreachable!("the store remains locked")
    }

    pub(crate) async fn open(&self) -> KnowledgeBase {
        let store = self.store();
        fs::create_dir_all(self.path("blobs")).unwrap();
        let blobs = LocalFileSystem::new_with_prefix(self.path("blobs")).unwrap();
        let options = IngestOptions { batch: 4, ..IngestOptions::default() };
        KnowledgeBase::builder()
            .vectors(Arc::new(store.vectors()))
            .state(Arc::new(store.state()))
            .queue(Arc::new(store.queue()))
            .blobs(Arc::new(blobs) as Arc<dyn ObjectStore>)
            .originals(Originals::in_folder(self.path("uploads")))
            .embedder(Arc::new(MemoryEmbedder::default()))
            .ingest_options(options)
            .build()
            .await
            .unwrap()
    }

    pub(crate) async fn examine(&self, repair: bool) -> DoctorReport {
        drop(self.store());
        let options =
            DoctorOptions { folders: Folders::new(self.folder.path()), repair, readers: Vec::new() };
        examine(options).await.unwrap()
    }

    pub(crate) async fn findings(&self) -> Vec<String> {
        self.examine(false).await.report.findings.into_iter().map(|finding| finding.what).collect()
    }

    /// Asserts that a check reports the damage, and that after a repair and the queued tasks, nothing is reported and
    /// all documents are as they were.
    pub(crate) async fn assert_repairs(&self, expected: &str) {
        let before = self.findings().await;
        assert!(before.iter().any(|what| what.contains(expected)), "{expected}: {before:?}");
        let repaired = self.examine(true).await;
        let unrepaired: Vec<_> =
            repaired.report.findings.iter().filter(|finding| finding.is_unrepaired()).collect();
        assert!(unrepaired.is_empty(), "{unrepaired:?}");
        let kb = self.open().await;
        while kb.queued_tasks().await.unwrap() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for (n, document) in (0..).zip(&self.documents) {
            let id = document.doc_id;
            assert_eq!(kb.text(id).await.unwrap().unwrap(), text(n));
            let chunks = kb.chunks(id, 0, 100).await.unwrap().unwrap();
            assert_eq!(chunks.items.len() as u64, document.counts.chunks);
            let found = kb.search(&SearchRequest::new(format!("whale number {n}"))).await.unwrap();
            assert!(found.response.results.iter().any(|result| result.doc_id == id), "{n}");
        }
        kb.close().await;
        assert_eq!(self.findings().await, Vec::<String>::new(), "after {expected}");
    }

    pub(crate) fn first(&self) -> &Document {
        &self.documents[0]
    }

    pub(crate) fn text_path(&self, document: &Document) -> PathBuf {
        let id = document.doc_id.to_string();
        self.path(&format!("blobs/texts/{}/{id}-{}", id.get(30..).unwrap(), document.revision))
    }
}

pub(crate) fn only(id: PointId) -> Filter {
    Filter::only(Condition::Ids(vec![id]))
}

pub(crate) fn point(document: &Document, layer: Layer, n: u32) -> PointId {
    PointId::derive(document.doc_id, document.revision, layer, n)
}

/// The size of a page of the store.
const PAGE_BYTES: usize = 4_096;

/// Edits the data file of the closed store wherever these bytes occur in a page with rows.
pub(crate) fn edit_data_file(closed: &ClosedKb, wanted: &[u8], edit_data_file: impl Fn(&mut [u8], usize)) {
    drop(closed.store());
    let data = closed.path("store/kb/data.mdb");
    let mut bytes = fs::read(&data).unwrap();
    let found = bytes.windows(wanted.len()).enumerate().filter(|(_, found)| *found == wanted);
    let found: Vec<_> =
        found.map(|(at, _)| at).filter(|at| bytes[at / PAGE_BYTES * PAGE_BYTES + 10] == 2).collect();
    assert!(!found.is_empty());
    found.into_iter().for_each(|at| edit_data_file(&mut bytes, at));
    fs::write(&data, bytes).unwrap();
}

/// Damages the value of the row with this key, so that its checksum does not match.
pub(crate) fn damage_row(closed: &ClosedKb, key: &str) {
    edit_data_file(closed, key.as_bytes(), |bytes, at| {
        // The length of the value, in two parts, flags and the length of the key precede the key. Remains of earlier pages may
        // have lost some of it to other rows, which stay undamaged: the value is whole if its checksum, at the start, matches.
        let number = |at| usize::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        let end = at + key.len() + number(at - 8);
        let is_whole = number(at - 6) == 0 && number(at - 4) == 0 && number(at - 2) == key.len();
        if !is_whole || end > (at / PAGE_BYTES + 1) * PAGE_BYTES {
            return;
        }
        if let Some((crc, payload)) = bytes[at + key.len()..end].split_first_chunk_mut()
            && u32::from_le_bytes(*crc) == crc_fast::crc32_iscsi(payload)
        {
            *crc = crc.map(|byte| !byte);
        }
    });
}

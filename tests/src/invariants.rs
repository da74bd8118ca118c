//! Invariants that must hold once all tasks have ended.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use lkr_domain::Layer;
use lkr_state::{ScanOrder, StateStore};
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use lkr_vectors::{Collection, Filter, VectorStore};

use crate::{Server, cli_binary, printed};

/// Counts by layer name.
pub type ByLayer = BTreeMap<String, u64>;

/// How often a server is restarted to collect garbage.
const TRIES: u32 = 10;

/// Checks that the statistics are the sums over the details of all documents, and returns them.
///
/// # Panics
/// If the statistics and the sums differ.
pub fn assert_consistent(server: &Server) -> ByLayer {
    let mut sums: ByLayer = Layer::ALL.iter().map(|layer| (layer.to_string(), 0)).collect();
    let documents = server.list_all("/documents");
    for document in &documents {
        let doc_id = document["doc_id"].as_str().expect("an id");
        let detail = server.get(&format!("/documents/{doc_id}")).data().clone();
        let length = |key: &str| detail[key].as_array().map_or(0, Vec::len) as u64;
        let counts = [1, length("l2"), length("l3"), detail["chunk_count"].as_u64().expect("a count")];
        for (layer, count) in Layer::ALL.iter().zip(counts) {
            *sums.entry(layer.to_string()).or_default() += count;
        }
    }
    let stats = server.get("/knowledge/stats").data().clone();
    let reported: ByLayer = serde_json::from_value(stats["collections"].clone()).expect("counts");
    assert_eq!(reported, sums, "statistics against the sums over {} documents", documents.len());
    assert_eq!(stats["documents_total"], documents.len());
    reported
}

/// Checks that the server collects all garbage, so that only visible data is stored, and leaves the server stopped.
///
/// # Panics
/// If other data than the visible is stored.
pub fn assert_garbage_collected(server: &Server, visible: &ByLayer) {
    let mut last_state = String::new();
    if server.has_own_stores() {
        return assert_doctor_finds_nothing(server);
    }
    let originals = originals(server);
    for attempt in 1..=TRIES {
        // A busy machine takes longer.
        thread::sleep(Duration::from_millis(300) * attempt);
        server.stop();
        let (points, garbage) = stored(&server.data_dir());
        let blobs = server.data_dir().join("blobs");
        let [texts, blocks, notes] = ["texts", "blocks", "notes"].map(|kind| files(&blobs.join(kind)));
        let uploads = server.data_dir().join("uploads");
        let mut stored: Vec<_> = files(&uploads);
        stored.sort();
        let named: Vec<_> = originals.iter().map(|path| uploads.join(path)).collect();
        // On a full disk the text of an upload may be stored and its original not, so there can be more blocks than
        // originals.
        let names_fit = names(&blocks).is_subset(&names(&texts)) && names(&notes).is_subset(&names(&texts));
        let blocks_fit = blocks.len() >= originals.len() && names_fit;
        // The worker of an overtaken task removes what it wrote, at the next start if necessary.
        let is_clean = texts.len() as u64 == visible["l1"] && blocks_fit && stored == named;
        if garbage == 0 && is_clean && points == *visible {
            return;
        }
        last_state = format!(
            "{garbage} garbage revisions, points {points:?} but {visible:?} visible, texts {texts:?}, blocks {blocks:?}, notes {notes:?}, \
             originals {stored:?} of {originals:?}"
        );
        server.restart();
    }
    panic!("garbage was not collected: {last_state}");
}

/// Checks stores outside of the data folder by the doctor, which compares what each of them has. Texts of requests that a kill cut off
/// before they were accepted are left for an hour, because other processes may be about to accept theirs. The server is stopped.
///
/// # Panics
/// If the doctor finds anything else, or does not run.
pub fn assert_doctor_finds_nothing(server: &Server) {
    let mut findings = Vec::new();
    for attempt in 1..=TRIES {
        if server.is_running() {
            thread::sleep(Duration::from_millis(300) * attempt);
            server.stop();
        }
        let mut doctor = server.command_of(cli_binary());
        let output = doctor.args(["doctor", "--shared", "--json"]).output().expect("the doctor runs");
        let report: serde_json::Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", printed(&output)));
        let found = report["findings"].as_array().expect("findings").iter();
        findings = found.map(|finding| finding["what"].as_str().expect("a text").to_owned()).collect();
        let is_left_for_an_hour = |what: &str| {
            what.starts_with("text of document") || what.starts_with("orphaned text of document")
        };
        findings.retain(|what| !is_left_for_an_hour(what));
        if findings.is_empty() {
            return;
        }
        server.restart();
    }
    panic!("the doctor finds: {findings:#?}");
}

/// The stored paths of the originals of all documents, sorted.
fn originals(server: &Server) -> Vec<String> {
    let paths =
        server.list_all("/documents").into_iter().map(|item| item["metadata"]["raw_file_path"].clone());
    let mut paths: Vec<String> = paths.filter_map(|path| path.as_str().map(str::to_owned)).collect();
    paths.sort();
    paths
}

/// The points in each layer's collection of a stopped server, and the number of garbage revisions.
///
/// # Panics
/// If the store cannot be opened.
#[must_use]
pub fn stored(data_dir: &Path) -> (ByLayer, usize) {
    let store = open_store(&data_dir.join("store"));
    let (vectors, state) = (store.vectors(), store.state());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut points = ByLayer::new();
        for layer in Layer::ALL {
            let count = vectors.count(&Collection::from(layer), &Filter::all()).await.expect("a count");
            points.insert(layer.to_string(), count);
        }
        let garbage = state.scan("trash/", None, ScanOrder::Ascending, 1000).await.expect("a scan");
        (points, garbage.len())
    })
}

fn names(paths: &[PathBuf]) -> BTreeSet<&OsStr> {
    paths.iter().filter_map(|path| path.file_name()).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flatten().flat_map(|entry| below(entry.path())).collect()
}

/// Opens a store that this process has closed before. Another test that starts a process at the same time may keep the lock
/// of the closed store for a moment: until its child executes the program, it has copies of all open files.
#[must_use]
pub fn open_store(path: &Path) -> LmdbStore {
    let begun = Instant::now();
    loop {
        match LmdbStore::open(path, LmdbOptions::default()) {
            Err(_) if begun.elapsed() < Duration::from_secs(10) => thread::sleep(Duration::from_millis(20)),
            opened => return opened.expect("the store opens"),
        }
    }
}

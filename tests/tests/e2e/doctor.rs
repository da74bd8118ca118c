//! `lkr doctor` on data folders of real servers, and servers with damaged data folders.

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use lkr_tests::{Server, cli_binary};
use serde_json::{Value, json};

pub(crate) fn doctor(server: &Server, arguments: &[&str]) -> Output {
    let mut command = Command::new(cli_binary());
    command.arg("doctor").arg("--data-dir").arg(server.data_dir()).args(arguments);
    command.current_dir(server.folder()).output().unwrap()
}

/// Damage to the folder of a killed server.
type Damage = dyn Fn(&Server);

/// Checks that doctor finds nothing in the stores of a stopped server.
pub(crate) fn assert_healthy(server: &Server) {
    if server.has_own_stores() {
        return lkr_tests::assert_doctor_finds_nothing(server);
    }
    let Output { status, stdout, stderr } = doctor(server, &[]);
    assert!(status.success(), "{}{}", printed(&stdout), printed(&stderr));
}

pub(crate) fn printed(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

fn text(n: usize) -> String {
    format!("# Stone {n}\n\n{}", format!("The stone number {n} lies in the river. It is grey. ").repeat(30))
}

/// A server with eight documents, and their ids.
fn filled() -> (Server, Vec<String>) {
    let server = Server::start();
    let ids = (0..8).map(|n| server.add(&json!({ "text": text(n) }))).collect();
    (server, ids)
}

fn file_of(server: &Server, id: &str) -> std::path::PathBuf {
    server.data_dir().join(format!("blobs/texts/{}/{id}-1", id.get(30..).unwrap()))
}

#[test]
fn doctor_without_repair_reports_and_changes_nothing() {
    let (server, ids) = filled();
    let rejected = doctor(&server, &["--repair"]);
    assert_eq!(rejected.status.code(), Some(2));
    assert!(printed(&rejected.stderr).contains("is in use by another process: stop the server first"));
    server.kill();
    let healthy = doctor(&server, &[]);
    assert_eq!(healthy.status.code(), Some(0), "{}", printed(&healthy.stdout));
    assert!(printed(&healthy.stdout).starts_with("8 documents, "));
    let path = file_of(&server, &ids[0]);
    let mut bytes = fs::read(&path).unwrap();
    bytes[50] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let found = doctor(&server, &[]);
    assert_eq!(found.status.code(), Some(1));
    let line = printed(&found.stdout).lines().next().unwrap();
    assert!(line.contains(&ids[0]) && line.contains("Stone 0"), "{line}");
    let as_json: Value = serde_json::from_slice(&doctor(&server, &["--json"]).stdout).unwrap();
    assert_eq!(as_json["findings"].as_array().unwrap().len(), 1);
    assert_eq!(as_json["documents"], 8);
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // The damaged text is not served; the others are.
    server.restart();
    server.get(&format!("/documents/{}/text", ids[0])).assert_error(2000, 500);
    assert_eq!(server.get(&format!("/documents/{}/text", ids[1])).data()["text"], text(1));
    let absent = Command::new(cli_binary()).args(["doctor", "--data-dir", "absent"]).output().unwrap();
    assert_eq!(absent.status.code(), Some(2));
    assert!(printed(&absent.stderr).contains("no knowledge base in absent"));
}

/// A missing store does not make all files orphans.
#[test]
fn missing_store_is_reported_and_not_recreated() {
    let (server, ids) = filled();
    server.kill();
    let data = server.data_dir().join("store/kb/data.mdb");
    fs::remove_file(&data).unwrap();
    let mut start = server.command();
    let output = start.env("RUST_LOG", "off").output().unwrap();
    assert!(!output.status.success());
    let line = printed(&output.stderr);
    let says = "data.mdb is missing: restore a backup; run `lkr doctor` to list the damage";
    assert!(line.contains(says), "{line}");
    for arguments in [&[][..], &["--repair"]] {
        let report = doctor(&server, arguments);
        assert_eq!(report.status.code(), Some(1), "{}", printed(&report.stderr));
        assert!(
            printed(&report.stdout).starts_with("store/kb/data.mdb is missing"),
            "{}",
            printed(&report.stdout)
        );
        assert!(!data.exists());
    }
    assert!(ids.iter().all(|id| file_of(&server, id).is_file()));
}

fn flip(path: &Path, seed: usize) {
    let mut bytes = fs::read(path).unwrap();
    for n in 0..16 {
        let at = (seed * 7_919 + n * 104_729) % bytes.len();
        bytes[at] ^= 1 << (n % 8);
    }
    fs::write(path, bytes).unwrap();
}

fn cluster_files(server: &Server) -> Vec<std::path::PathBuf> {
    let folders = fs::read_dir(server.data_dir().join("store/clusters")).unwrap();
    let files = folders.map(|folder| folder.unwrap().path().join("data.mdb"));
    files.filter(|file| file.is_file()).collect()
}

/// The server starts with any damage to the clusters of vectors, and searches return the same results.
#[test]
fn damaged_clusters_are_rebuilt_at_start() {
    let (server, ids) = filled();
    let clusters = server.data_dir().join("store/clusters");
    let truncate = |share: u64| {
        move |server: &Server| {
            for file in cluster_files(server) {
                let length = fs::metadata(&file).unwrap().len();
                fs::File::options().write(true).open(&file).unwrap().set_len(length * share / 4).unwrap();
            }
        }
    };
    let damages: [Box<Damage>; 9] = [
        Box::new(|server| fs::remove_dir_all(server.data_dir().join("store/clusters")).unwrap()),
        Box::new(truncate(0)),
        Box::new(truncate(1)),
        Box::new(truncate(2)),
        Box::new(move |_| {
            fs::remove_dir_all(&clusters).unwrap();
            fs::write(&clusters, "not a folder").unwrap();
        }),
        Box::new(|server| cluster_files(server).iter().for_each(|file| flip(file, 1))),
        Box::new(|server| cluster_files(server).iter().for_each(|file| flip(file, 2))),
        Box::new(|server| {
            for name in ["lock", "kb/lock.mdb"] {
                fs::write(server.data_dir().join("store").join(name), "corrupt").unwrap();
            }
        }),
        Box::new(|server| {
            for name in ["lock", "kb/lock.mdb"] {
                fs::write(server.data_dir().join("store").join(name), "").unwrap();
            }
        }),
    ];
    for (n, damage) in damages.iter().enumerate() {
        server.kill();
        damage(&server);
        server.restart();
        for (at, id) in ids.iter().enumerate() {
            let found = server.search(&json!({ "query": format!("stone number {at}"), "top_k": 20 }));
            let results = found["results"].as_array().unwrap();
            assert!(results.iter().any(|result| result["doc_id"] == **id), "damage {n}: {at}");
        }
    }
    server.kill();
    let healthy = doctor(&server, &[]);
    assert_eq!(healthy.status.code(), Some(0), "{}", printed(&healthy.stdout));
}

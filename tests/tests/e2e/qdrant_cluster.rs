//! Processes on a cluster of real Qdrant nodes that fail. The tests need Qdrant's executable.

use std::{
    thread,
    time::{Duration, Instant},
};

use lkr_test_support::QdrantCluster;
use lkr_tests::{Role, Seed, SharedStores};
use serde_json::json;

use crate::several_processes::{assert_ingested_once_despite, documents_to_add, eventually, rock};

const NODES: usize = 3;

/// Each shard is on two of the nodes, and a write must reach both.
const TWO_COPIES: [(&str, &str); 3] =
    [("LKR_QDRANT_SHARDS", "3"), ("LKR_QDRANT_REPLICAS", "2"), ("LKR_QDRANT_WRITE_CONSISTENCY", "2")];

/// Each shard is on all nodes, and a write must reach two of them.
const THREE_COPIES: [(&str, &str); 3] =
    [("LKR_QDRANT_SHARDS", "3"), ("LKR_QDRANT_REPLICAS", "3"), ("LKR_QDRANT_WRITE_CONSISTENCY", "2")];

/// For how long a node hangs.
const HANG: Duration = Duration::from_secs(20);

/// Documents are submitted while nodes of the cluster are killed, also the one that all processes talk to. Afterwards each
/// document exists exactly once and is found.
#[test]
fn documents_are_there_once_although_nodes_are_killed() {
    let Some(mut cluster) = QdrantCluster::start(NODES) else { return };
    let Some(stores) = SharedStores::start_beside(cluster.url(0), &TWO_COPIES) else { return };
    let documents = documents_to_add();
    let mut seed = Seed::announce("qdrant_cluster");
    let (api, _workers) = (stores.server(Role::Api), [(); 2].map(|()| stores.server(Role::Worker)));
    let begun = Instant::now();
    let kill = || {
        for round in 0..(documents / 100).max(NODES as u64) {
            let node = (round + seed.below(2)) as usize % NODES;
            cluster.kill(node);
            thread::sleep(Duration::from_millis(seed.below(3_000)));
            cluster.restart(node);
            thread::sleep(Duration::from_secs(2));
        }
    };
    assert_ingested_once_despite(kill, &api, documents);
    eprintln!("{documents} documents: {:.0} s", begun.elapsed().as_secs_f64());
}

/// A node hangs. Searches go on by the other copies; or they fail at once, if it is the node that the server talks to. Documents
/// are accepted, and ingested when the node goes on.
#[test]
fn searches_are_answered_and_documents_wait_while_a_node_hangs() {
    let Some(cluster) = QdrantCluster::start(NODES) else { return };
    let Some(stores) = SharedStores::start_beside(cluster.url(0), &THREE_COPIES) else { return };
    let server = stores.server(Role::All);
    for n in 0..20 {
        let _doc_id = server.add(&rock(n));
    }
    let search = |n: u64, nonce: u64| {
        let begun = Instant::now();
        // No two queries are the same, so none is answered from memory.
        let request = json!({"query": format!("rock number{n} {nonce}"), "top_k": 1});
        let answer = server.call("POST", "/search", Some(&request), Some(server.admin()));
        let is_found = answer.status == 200 && answer.data()["results"][0]["source"] == format!("quarry:{n}");
        assert!(is_found || answer.code() == 2000, "{answer:?}");
        (is_found, begun.elapsed())
    };
    for node in 0..NODES {
        cluster.pause(node);
        let begun = Instant::now();
        let accepted = server.submit(&rock(100 + node as u64));
        let mut times = Vec::new();
        while begun.elapsed() < HANG {
            let nonce = begun.elapsed().as_nanos() as u64;
            times.push(search(times.len() as u64 % 20, nonce));
        }
        cluster.resume(node);
        let failed = times.iter().filter(|(is_found, _)| !is_found).count();
        let slow: Vec<String> = times
            .iter()
            .filter(|(_, time)| *time > Duration::from_secs(1))
            .map(|(is_found, time)| {
                format!("{:.1} s ({})", time.as_secs_f64(), if *is_found { "found" } else { "2000" })
            })
            .collect();
        eprintln!("node {node} hangs: {} searches, {failed} failed, slow ones: {slow:?}", times.len());
        assert!(
            node == 0 || failed == 0,
            "searches failed although the server does not talk to the node that hangs"
        );
        eventually("searches do not come back", || search(0, 0).0);
        let task = server.wait_for_task(accepted["task_id"].as_str().unwrap());
        assert_eq!(task["status"], "done", "{task}");
        assert!(search(100 + node as u64, 0).0);
        eprintln!("ingested {:.1} s after the node went on", (begun.elapsed() - HANG).as_secs_f64());
    }
}

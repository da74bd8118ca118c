use std::sync::Arc;

use lkr_spaces::{ErrorKind, MemberId, SpaceRole, Spaces};
use lkr_state::{MemoryState, StateStore};

use crate::support::{account, closed_space, name};

/// Each handle stands for a process on the same store.
fn processes(count: usize) -> Vec<Spaces> {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    (0..count).map(|_| Spaces::new(Arc::clone(&state))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_changes_lose_no_update() {
    let processes = processes(8);
    processes[0].create(closed_space("a"), vec![]).await.unwrap();
    let added = processes.iter().enumerate().map(|(n, spaces)| {
        let spaces = spaces.clone();
        tokio::spawn(async move {
            let id = MemberId::User(format!("{n}"));
            spaces.put_member(&name("a"), id, "eva", SpaceRole::Reader, vec![]).await.unwrap();
        })
    });
    for task in added.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    for spaces in &processes {
        assert_eq!(spaces.directory().await.unwrap().members(&name("a")).len(), 8);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_two_concurrent_creations_of_a_name_succeeds() {
    let processes = processes(2);
    for round in 0..50 {
        let create = |spaces: &Spaces| {
            let spaces = spaces.clone();
            tokio::spawn(async move { spaces.create(closed_space(&format!("s{round}")), vec![]).await })
        };
        let (a, b) = (create(&processes[0]), create(&processes[1]));
        let results = [a.await.unwrap(), b.await.unwrap()];
        let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "{results:?}");
        assert_eq!(refused[0].kind(), ErrorKind::Taken);
    }
}

/// A right that one process takes away is gone at the next call in another, however the calls interleave.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn revoked_right_is_gone_at_the_next_call_of_every_process() {
    let processes = processes(3);
    let (space, eva) = (name("a"), MemberId::User("eva".to_owned()));
    processes[0].create(closed_space("a"), vec![]).await.unwrap();
    let reader = processes[2].clone();
    let noise = tokio::spawn(async move {
        for _ in 0..2_000 {
            reader.directory().await.unwrap();
        }
    });
    for _ in 0..100 {
        processes[0].put_member(&space, eva.clone(), "eva", SpaceRole::Reader, vec![]).await.unwrap();
        for spaces in &processes {
            assert!(spaces.directory().await.unwrap().may_read(&account("eva"), &space));
        }
        processes[1].remove_member(&space, &eva, vec![]).await.unwrap();
        for spaces in &processes {
            assert!(!spaces.directory().await.unwrap().may_read(&account("eva"), &space));
        }
    }
    noise.await.unwrap();
}

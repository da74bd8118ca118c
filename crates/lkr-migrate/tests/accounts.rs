//! Accounts, sessions and API keys after a migration.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "support/mod.rs"]
mod support;

use std::{sync::Arc, time::Duration};

use lkr_auth::{Actor, Auth, AuthOptions, FIRST_ADMIN, LoginAttempt};
use lkr_state::StateStore;
use support::{memory, migration, quiet};

const PASSWORD: &str = "correct horse battery staple";

fn auth(state: &Arc<dyn StateStore>) -> Auth {
    let options = AuthOptions { iterations: 1_000, ..AuthOptions::default() };
    Auth::new(Arc::clone(state), &options).unwrap()
}

/// When the records expire whose keys begin with `prefix`, in seconds from now on; `None` if they never do.
async fn lifetimes(state: &dyn StateStore, prefix: &str) -> Vec<Option<u64>> {
    let folder = tempfile::tempdir().unwrap();
    state.snapshot(&folder.path().join("copy")).await.unwrap();
    let dump = std::fs::read(folder.path().join("copy/state.json")).unwrap();
    let dump: serde_json::Value = serde_json::from_slice(&dump).unwrap();
    let now = time::OffsetDateTime::now_utc().unix_timestamp() as u64;
    let records = dump["records"].as_array().unwrap().iter();
    let records = records.filter(|record| record["key"].as_str().unwrap().starts_with(prefix));
    records.map(|record| record["expires"].as_u64().map(|ms| (ms / 1_000).saturating_sub(now))).collect()
}

#[tokio::test]
async fn sessions_and_keys_are_valid_in_the_target_until_they_expire() {
    let (source, target) = (memory(), memory());
    let before = auth(&source.state);
    before.initialise(PASSWORD, false).await.unwrap();
    let attempt = |password| LoginAttempt { username: FIRST_ADMIN, password, address: None, request_id: "r" };
    before.login(attempt("wrong, so that a failure is counted")).await.unwrap_err();
    let session = before.login(attempt(PASSWORD)).await.unwrap();
    let by = Actor::program("test");
    let for_ever = before.create_key(FIRST_ADMIN, "for ever", None, by).await.unwrap();
    let an_hour = Some(Duration::from_secs(3_600));
    let for_an_hour = before.create_key(FIRST_ADMIN, "for an hour", an_hour, by).await.unwrap();

    migration(&source, &target).run(&quiet).await.unwrap();
    let after = auth(&target.state);
    for token in [&session.token, &for_ever.secret, &for_an_hour.secret] {
        let identity = after.authenticate(token).await.unwrap();
        assert_eq!(identity, before.authenticate(token).await.unwrap());
    }
    after.login(attempt(PASSWORD)).await.unwrap();
    assert!(lifetimes(&*target.state, "auth/throttle/").await.is_empty());
    assert_eq!(lifetimes(&*target.state, "auth/account/").await, [None]);
    let near = |found: Vec<Option<u64>>, expected: u64| {
        let is_near = |left: u64| (expected.saturating_sub(100)..=expected).contains(&left);
        assert!(!found.is_empty() && found.iter().flatten().all(|&left| is_near(left)), "{found:?}");
    };
    near(lifetimes(&*target.state, "auth/session/").await, 12 * 3_600);
    near(lifetimes(&*target.state, "audit/").await, 400 * 24 * 3_600);
    for prefix in ["auth/key/", "auth/account-key/"] {
        let mut found = lifetimes(&*target.state, prefix).await;
        found.sort_unstable();
        assert_eq!(found.len(), 2);
        assert_eq!(found.remove(0), None, "{prefix}: a key without an end");
        near(found, 3_600);
    }
}

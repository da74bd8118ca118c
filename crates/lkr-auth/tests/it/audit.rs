//! The audit log.

use std::sync::Arc;

use lkr_auth::{AuditAction, AuditFilter, AuditId, AuditLog, Role};
use lkr_state::{ErrorKind as StateErrorKind, MemoryState, Op, StateStore, Write};
use serde_json::{Map, Value, json};

use crate::support::{add, auth_with_admin, by, disabled, entries};

async fn write(state: &dyn StateStore, actor: &str, action: AuditAction, target: &str) {
    let entry = AuditLog::entry(by(actor), action, target, Map::new()).unwrap();
    state.apply(vec![entry]).await.unwrap();
}

fn filter(actor: Option<&str>, action: Option<AuditAction>) -> AuditFilter {
    AuditFilter { actor: actor.map(str::to_owned), action }
}

/// The targets on all pages.
async fn targets(log: &AuditLog, filter: &AuditFilter, limit: usize) -> Vec<String> {
    let (mut targets, mut after): (Vec<String>, Option<AuditId>) = (vec![], None);
    loop {
        let page = log.list(filter, after, limit).await.unwrap();
        assert!(page.items.len() == limit || page.next.is_none(), "every page but the last is full");
        assert!(!page.items.is_empty() || after.is_none(), "no page is empty unless the list is");
        targets.extend(page.items.into_iter().map(|entry| entry.target));
        after = page.next;
        if after.is_none() {
            return targets;
        }
    }
}

#[tokio::test]
async fn entry_has_actor_action_target_and_time() {
    let (auth, _) = auth_with_admin().await;
    let first = entries(&auth).await.remove(0);
    assert_eq!((first.actor.as_str(), first.action), ("first start", AuditAction::AccountCreate));
    let before = time::OffsetDateTime::now_utc();
    add(&auth, "bob", Role::User).await;
    auth.change_account("bob", disabled(true), by("admin")).await.unwrap();
    let entry = entries(&auth).await.remove(0);
    assert_eq!((entry.actor.as_str(), entry.request_id.as_str()), ("admin", "r-2"));
    assert_eq!((entry.action, entry.target.as_str()), (AuditAction::AccountChange, "bob"));
    assert_eq!(Value::from(entry.detail.clone()), json!({"disabled": true}));
    assert!(entry.at >= before && entry.at <= time::OffsetDateTime::now_utc());
    assert_eq!(entry.id.to_string().parse::<AuditId>(), Ok(entry.id));
}

#[tokio::test]
async fn filtered_pages_are_full_except_the_last() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let log = AuditLog::new(Arc::clone(&state));
    assert!(targets(&log, &AuditFilter::default(), 3).await.is_empty());
    for n in 0..300 {
        let actor = if n % 7 == 0 { "Ada" } else { "bob" };
        let action = if n % 3 == 0 { AuditAction::DocumentDelete } else { AuditAction::SettingsChange };
        write(&*state, actor, action, &n.to_string()).await;
    }
    let expected = |wanted: &dyn Fn(i32) -> bool| -> Vec<String> {
        (0..300).rev().filter(|&n| wanted(n)).map(|n| n.to_string()).collect()
    };
    let delete = Some(AuditAction::DocumentDelete);
    for limit in [1, 4, 43, 100, 1000] {
        assert_eq!(targets(&log, &filter(None, None), limit).await, expected(&|_| true));
        assert_eq!(targets(&log, &filter(Some("aDA"), None), limit).await, expected(&|n| n % 7 == 0));
        assert_eq!(targets(&log, &filter(None, delete), limit).await, expected(&|n| n % 3 == 0));
        assert_eq!(targets(&log, &filter(Some("ada"), delete), limit).await, expected(&|n| n % 21 == 0));
        assert!(targets(&log, &filter(Some("nobody"), None), limit).await.is_empty());
    }
}

#[tokio::test]
async fn entry_is_applied_with_its_step_and_kept_for_400_days() {
    let state: Arc<dyn StateStore> = Arc::new(MemoryState::default());
    let detail = Map::from_iter([("title".to_owned(), json!("x"))]);
    let entry = AuditLog::entry(by("ada"), AuditAction::DocumentChange, "d", detail.clone()).unwrap();
    let Op::Put { ttl, .. } = &entry.op else { panic!("{entry:?}") };
    assert_eq!(ttl.unwrap().as_secs(), 400 * 86_400);
    let check = Write::check("other", lkr_state::Expect::Version(1));
    let failed = state.apply(vec![entry.clone(), check]).await.unwrap_err();
    assert_eq!(failed.kind(), StateErrorKind::Conflict);
    let log = AuditLog::new(Arc::clone(&state));
    assert!(log.list(&AuditFilter::default(), None, 10).await.unwrap().items.is_empty());
    state.apply(vec![entry]).await.unwrap();
    assert_eq!(log.list(&AuditFilter::default(), None, 10).await.unwrap().items[0].detail, detail);
}

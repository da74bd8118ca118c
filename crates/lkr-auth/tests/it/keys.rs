//! API keys.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use lkr_auth::{AuditAction, Credential, ErrorKind, KeyId, KeyRequest, KeyScope, Role};
use lkr_domain::SpaceName;
use lkr_state::{MemoryState, ScanOrder};

use crate::support::{
    OPERATOR, OTHER, PASSWORD, actions, add, all_records, auth_over, auth_with_admin, by, change_record,
    entries, interleaving_state, kind_of, login, options, role, slow_state,
};

const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

#[tokio::test]
async fn key_authenticates_its_account() {
    let (auth, _) = auth_with_admin().await;
    let made = auth.create_key("Admin", "nightly backup", None, by("admin")).await.unwrap();
    let identity = auth.authenticate(&made.secret).await.unwrap();
    assert_eq!(
        identity.credential,
        Credential::Key { id: made.key.id, expires_at: None, scope: KeyScope::default() }
    );
    assert_eq!(identity.account, auth.account("admin").await.unwrap().unwrap());
    assert_eq!(made.key.expires_at, None);
    assert_eq!(auth.keys("ADMIN", None, 10).await.unwrap().items, std::slice::from_ref(&made.key));
    let entry = entries(&auth).await.remove(0);
    assert_eq!((entry.action, entry.target), (AuditAction::KeyCreate, made.key.id.to_string()));
    assert_eq!(made.key.id.to_string().parse::<KeyId>(), Ok(made.key.id));
}

#[tokio::test]
async fn key_has_the_current_role_of_its_account() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let made = auth.create_key("bob", "key", None, by("bob")).await.unwrap();
    assert_eq!(auth.authenticate(&made.secret).await.unwrap().account.role, Role::User);
    auth.change_account("bob", role(Role::Admin), by("admin")).await.unwrap();
    assert_eq!(auth.authenticate(&made.secret).await.unwrap().account.role, Role::Admin);
}

#[tokio::test]
async fn lesson_24_keys_are_random_and_not_stored_in_plain_text() {
    let (auth, state) = auth_with_admin().await;
    let one = auth.create_key("admin", "one", None, by("admin")).await.unwrap();
    let two = auth.create_key("admin", "two", None, by("admin")).await.unwrap();
    assert_ne!(one.secret, two.secret);
    let random = one.secret.strip_prefix("lkr_").unwrap();
    assert_eq!(random.len(), 64, "256 bits");
    assert!(random.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
    for (key, value) in all_records(&*state).await {
        assert!(!key.contains(random) && !value.contains(random), "{key}");
    }
    assert!(!format!("{one:?}").contains(random));
}

#[tokio::test]
async fn lesson_32_every_invalid_credential_gets_the_same_answer() {
    let (auth, _) = auth_with_admin().await;
    let made = auth.create_key("admin", "key", None, by("admin")).await.unwrap();
    auth.delete_key("admin", made.key.id, by("admin")).await.unwrap();
    let unknown = format!("lkr_{}", "0".repeat(64));
    let upper = made.secret.to_uppercase();
    let bare = made.secret.trim_start_matches("lkr_");
    let malformed = auth.authenticate("x").await.unwrap_err().to_string();
    for token in [&made.secret, &unknown, &upper, bare, "lkr_", "", &format!("{}0", made.secret), "lkr_é"] {
        let error = auth.authenticate(token).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Unauthenticated, malformed.clone()));
    }
}

#[tokio::test]
async fn key_with_invalid_name_or_lifetime_is_refused() {
    let (auth, _) = auth_with_admin().await;
    let make = async |name: &str, lifetime| auth.create_key("admin", name, lifetime, by("admin")).await;
    for name in ["", " ", "\u{a0}\t", "a\nb", "a\0", &"x".repeat(101)] {
        assert_eq!(kind_of(make(name, None).await), ErrorKind::Invalid, "{name:?}");
    }
    for lifetime in [Duration::ZERO, Duration::from_millis(999), 101 * YEAR, Duration::MAX] {
        assert_eq!(kind_of(make("key", Some(lifetime)).await), ErrorKind::Invalid, "{lifetime:?}");
    }
    assert_eq!(actions(&auth).await, [AuditAction::AccountCreate], "nothing was created");
    assert!(make(&"é".repeat(100), Some(100 * YEAR)).await.is_ok());
}

#[tokio::test]
async fn expired_key_is_refused_and_removed() {
    let (auth, state) = auth_with_admin().await;
    let second = Duration::from_secs(1);
    let brief = auth.create_key("admin", "brief", Some(second), by("admin")).await.unwrap();
    let lasting = auth.create_key("admin", "lasting", Some(YEAR), by("admin")).await.unwrap();
    assert_eq!(brief.key.expires_at.unwrap() - brief.key.created_at, second);
    tokio::time::sleep(second).await;
    assert_eq!(kind_of(auth.authenticate(&brief.secret).await), ErrorKind::Unauthenticated);
    assert!(auth.authenticate(&lasting.secret).await.is_ok());
    assert_eq!(auth.keys("admin", None, 10).await.unwrap().items, [lasting.key]);
    assert_eq!(kind_of(auth.delete_key("admin", brief.key.id, by("admin")).await), ErrorKind::NotFound);
    let left = all_records(&*state).await;
    assert_eq!(
        left.iter().filter(|(key, _)| key.contains("key/")).count(),
        2,
        "only the records of the other key"
    );
}

#[tokio::test]
async fn lesson_21_key_is_deleted_only_by_its_account() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    let made = auth.create_key("bob", "key", None, by("bob")).await.unwrap();
    assert_eq!(kind_of(auth.delete_key("admin", made.key.id, by("admin")).await), ErrorKind::NotFound);
    assert!(auth.authenticate(&made.secret).await.is_ok());
    auth.delete_key("bob", made.key.id, by("bob")).await.unwrap();
    assert_eq!(kind_of(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
    assert_eq!(kind_of(auth.delete_key("bob", made.key.id, by("bob")).await), ErrorKind::NotFound);
    assert!(auth.keys("bob", None, 10).await.unwrap().items.is_empty());
    let entry = entries(&auth).await.remove(0);
    assert_eq!((entry.action, entry.actor.as_str()), (AuditAction::KeyDelete, "bob"));
    assert_eq!(entry.detail["name"], "key");
}

#[tokio::test]
async fn keys_are_paged_newest_first() {
    let (auth, _) = auth_with_admin().await;
    add(&auth, "bob", Role::User).await;
    for n in 0..5 {
        auth.create_key("admin", &n.to_string(), None, by("admin")).await.unwrap();
        auth.create_key("bob", "another's", None, by("bob")).await.unwrap();
    }
    let (mut names, mut after) = (vec![], None);
    loop {
        let page = auth.keys("admin", after, 2).await.unwrap();
        assert!(page.items.len() == 2 || page.next.is_none(), "every page but the last is full");
        names.extend(page.items.into_iter().map(|key| key.name));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, ["4", "3", "2", "1", "0"]);
    assert_eq!(auth.keys("admin", None, 5).await.unwrap().next, None);
}

#[tokio::test]
async fn concurrent_creation_keeps_the_limit_of_a_hundred_keys() {
    let (auth, _) = auth_over(interleaving_state(7), &options()).await;
    for n in 0..98 {
        auth.create_key("admin", &format!("key {n}"), None, by("admin")).await.unwrap();
    }
    let creations = (0..6).map(|_| {
        let auth = auth.clone();
        tokio::spawn(async move { auth.create_key("admin", "one more", None, by("admin")).await })
    });
    let mut refused = 0;
    for task in creations.collect::<Vec<_>>() {
        if let Err(error) = task.await.unwrap() {
            assert_eq!(error.kind(), ErrorKind::TooMany);
            refused += 1;
        }
    }
    assert_eq!(refused, 4);
    let keys = auth.keys("admin", None, 1000).await.unwrap().items;
    assert_eq!(keys.len(), 100);
    auth.delete_key("admin", keys[0].id, by("admin")).await.unwrap();
    assert!(auth.create_key("admin", "again", None, by("admin")).await.is_ok());
    auth.reset_password("admin", OTHER, by("admin")).await.unwrap();
    assert!(auth.keys("admin", None, 1000).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn concurrent_changes_of_an_account_all_succeed_on_a_slow_store() {
    let (auth, _) = auth_over(slow_state(Duration::from_millis(20)), &options()).await;
    add(&auth, "bob", Role::User).await;
    let changes = (0..40).map(|n| {
        let auth = auth.clone();
        tokio::spawn(async move {
            match n % 4 {
                0 => auth
                    .change_account("Bob", role(if n % 8 == 0 { Role::Admin } else { Role::User }), OPERATOR)
                    .await
                    .map(drop),
                _ => auth.create_key("bob", "key", None, by("bob")).await.map(drop),
            }
        })
    });
    for change in changes.collect::<Vec<_>>() {
        change.await.unwrap().unwrap();
    }
    assert_eq!(auth.keys("bob", None, 100).await.unwrap().items.len(), 30);
}

#[tokio::test]
async fn lesson_24_reset_ends_a_key_created_concurrently() {
    for seed in 0..60 {
        let (auth, state) = auth_over(interleaving_state(seed), &options()).await;
        add(&auth, "bob", Role::User).await;
        let (made, ended) = tokio::join!(
            async {
                // Delays this call by a varying time, so that each order occurs.
                for _ in 0..seed % 8 {
                    tokio::time::sleep(Duration::from_micros(200)).await;
                }
                auth.create_key("bob", "key", None, by("bob")).await
            },
            async {
                if seed % 2 == 0 {
                    auth.reset_password("bob", OTHER, by("admin")).await.map(drop)
                } else {
                    auth.delete_account("bob", by("admin")).await
                }
            }
        );
        ended.unwrap();
        if let Ok(made) = made {
            assert_eq!(kind_of(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
        }
        let left = all_records(&*state).await;
        assert!(left.iter().all(|(key, _)| !key.contains("key/")), "no record is left");
    }
}

#[tokio::test]
async fn key_outlives_the_process() {
    let state = Arc::new(MemoryState::default());
    let (auth, _) = auth_over(Arc::clone(&state) as _, &options()).await;
    let made = auth.create_key("admin", "key", None, by("admin")).await.unwrap();
    drop(auth);
    let reopened = lkr_auth::Auth::new(state, &options()).unwrap();
    assert!(reopened.authenticate(&made.secret).await.is_ok());
    assert!(reopened.change_password("admin", PASSWORD, OTHER, by("admin")).await.is_ok());
    assert!(reopened.authenticate(&made.secret).await.is_ok());
}

/// Ended keys are removed. A record that is left behind is not valid either.
#[tokio::test]
async fn lesson_24_key_is_bound_to_its_account_and_epoch() {
    let (auth, state) = auth_with_admin().await;
    let made = auth.create_key("admin", "key", None, by("admin")).await.unwrap();
    change_record(&*state, "admin", |account| account["key_epoch"] = 1.into()).await;
    assert_eq!(kind_of(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
    assert!(auth.keys("admin", None, 10).await.unwrap().items.is_empty());
    assert_eq!(kind_of(auth.delete_key("admin", made.key.id, by("admin")).await), ErrorKind::NotFound);
    change_record(&*state, "admin", |account| account["key_epoch"] = 0.into()).await;
    assert!(auth.authenticate(&made.secret).await.is_ok());
    change_record(&*state, "admin", |account| account["id"] = "another".into()).await;
    assert_eq!(kind_of(auth.authenticate(&made.secret).await), ErrorKind::Unauthenticated);
}

#[tokio::test]
async fn key_cannot_create_a_key_that_outlives_it() {
    let (auth, _) = auth_with_admin().await;
    let (hour, minute) = (Duration::from_secs(3600), Duration::from_secs(60));
    let session = auth.authenticate(&login(&auth, "admin", PASSWORD).await.unwrap().token).await.unwrap();
    let forever = auth.create_key_with(&session, request(None), "").await.unwrap();
    assert_eq!(forever.key.expires_at, None);
    let forever = auth.authenticate(&forever.secret).await.unwrap();
    assert_eq!(auth.create_key_with(&forever, request(None), "").await.unwrap().key.expires_at, None);
    let parent = auth.create_key_with(&session, request(Some(hour)), "").await.unwrap();
    let with = auth.authenticate(&parent.secret).await.unwrap();
    let short = auth.create_key_with(&with, request(Some(minute)), "").await.unwrap().key;
    assert_eq!(short.expires_at, Some(short.created_at + minute));
    let same = auth.create_key_with(&with, request(None), "r-5").await.unwrap();
    assert_eq!(same.key.expires_at, parent.key.expires_at);
    assert_eq!(entries(&auth).await[0].request_id, "r-5");
    // The limit applies across generations of keys.
    let with = auth.authenticate(&same.secret).await.unwrap();
    assert_eq!(
        auth.create_key_with(&with, request(None), "").await.unwrap().key.expires_at,
        parent.key.expires_at
    );
    assert_eq!(kind_of(auth.create_key_with(&with, request(Some(hour)), "").await), ErrorKind::Invalid);
}

fn request(expires_in: Option<Duration>) -> KeyRequest<'static> {
    KeyRequest { name: "k", expires_in, scope: KeyScope::default() }
}

#[tokio::test]
async fn restricted_key_keeps_its_scope_and_creates_no_keys() {
    let (auth, _) = auth_with_admin().await;
    let session = auth.authenticate(&login(&auth, "admin", PASSWORD).await.unwrap().token).await.unwrap();
    let spaces = Some(BTreeSet::from([SpaceName::new("legal").unwrap(), SpaceName::default()]));
    for scope in [
        KeyScope { spaces: spaces.clone(), write: true },
        KeyScope { spaces: None, write: false },
        KeyScope { spaces: Some(BTreeSet::new()), write: false },
    ] {
        let new = KeyRequest { scope: scope.clone(), ..request(None) };
        let made = auth.create_key_with(&session, new, "").await.unwrap();
        assert_eq!(made.key.scope, scope);
        let identity = auth.authenticate(&made.secret).await.unwrap();
        assert_eq!(identity.credential.key_scope(), Some(&scope));
        assert!(identity.credential.is_restricted());
        assert_eq!(auth.keys("admin", None, 1).await.unwrap().items[0].scope, scope);
        assert_eq!(kind_of(auth.create_key_with(&identity, request(None), "").await), ErrorKind::Forbidden);
    }
    assert!(!session.credential.is_restricted());
}

/// Keys that earlier versions stored have no scope in their records.
#[tokio::test]
async fn stored_key_without_a_scope_is_unrestricted() {
    let (auth, state) = auth_with_admin().await;
    let made = auth.create_key("admin", "key", None, by("admin")).await.unwrap();
    for prefix in ["auth/key/", "auth/account-key/"] {
        let found = state.scan(prefix, None, ScanOrder::Ascending, 10).await.unwrap();
        let text = String::from_utf8(found[0].1.value.to_vec()).unwrap();
        assert!(!text.contains("spaces") && !text.contains("read_only"), "{text}");
    }
    let identity = auth.authenticate(&made.secret).await.unwrap();
    assert_eq!(identity.credential.key_scope(), Some(&KeyScope::default()));
}

//! Accounts, sessions and keys during an outage, and what another process on the plain store sees after it.

use std::{sync::Arc, time::Duration};

use lkr_auth::{
    AccountChange, Actor, AuditFilter, Auth, AuthOptions, ErrorKind, Login, LoginAttempt, NewAccount, Result,
    Role,
};
use lkr_state::StateStore;
use lkr_state_fallback::FallbackState;
use tempfile::TempDir;

use crate::support::{Remote, kill, open};

pub(crate) const PASSWORD: &str = "correct horse battery";
const OTHER: &str = "another long password";
const THIRD: &str = "a third long password";
pub(crate) const OPERATOR: Actor<'static> = Actor { actor: "operator", account_id: None, request_id: "r-1" };

pub(crate) fn auth_over(state: Arc<dyn StateStore>) -> Auth {
    let options = AuthOptions {
        iterations: 1_000,
        session_ttl: Duration::from_secs(600),
        max_concurrent_hashes: 2,
        ..AuthOptions::default()
    };
    Auth::new(state, &options).unwrap()
}

/// A process whose way to the store can be cut, and another one on the plain store.
struct Processes {
    auth: Auth,
    other: Auth,
    state: Arc<FallbackState>,
    remote: Arc<Remote>,
    folder: TempDir,
}

impl Processes {
    async fn start() -> Self {
        let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
        let other = auth_over(remote.store());
        other.initialise(PASSWORD, false).await.unwrap();
        for username in ["ada", "bob"] {
            add(&other, username, Role::User).await.unwrap();
        }
        let state = open(&remote, folder.path()).await;
        let auth = auth_over(Arc::clone(&state) as _);
        Self { auth, other, state, remote, folder }
    }

    async fn heal(&self) {
        self.remote.on();
        self.state.recover().await.unwrap();
        assert_eq!(self.state.status().await.journal_entries, 0);
    }

    /// Both processes, and the first one again while the store is away after the merge.
    async fn refuse(&self, token: &str) {
        for auth in [&self.auth, &self.other] {
            assert_eq!(kind(auth.authenticate(token).await), ErrorKind::Unauthenticated);
        }
        self.remote.off();
        assert_eq!(kind(self.auth.authenticate(token).await), ErrorKind::Unauthenticated);
        self.heal().await;
    }

    async fn accept(&self, token: &str) {
        for auth in [&self.auth, &self.other] {
            auth.authenticate(token).await.unwrap();
        }
    }
}

#[track_caller]
fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("the call fails").kind()
}

pub(crate) async fn add(auth: &Auth, username: &str, role: Role) -> Result<lkr_auth::Account> {
    let new = NewAccount { username, password: PASSWORD, role, must_change_password: false };
    auth.create_account(new, OPERATOR).await
}

pub(crate) async fn login(auth: &Auth, username: &str, password: &str) -> Result<Login> {
    auth.login(LoginAttempt { username, password, address: None, request_id: "r-2" }).await
}

pub(crate) const fn disabled(disabled: bool) -> AccountChange {
    AccountChange { role: None, disabled: Some(disabled) }
}

#[tokio::test]
async fn login_and_logout_go_on_during_an_outage_and_hold_after_it() {
    let it = Processes::start().await;
    let before = login(&it.auth, "ada", PASSWORD).await.unwrap();
    let elsewhere = login(&it.other, "ada", PASSWORD).await.unwrap();
    it.state.refresh().await.unwrap();
    it.remote.off();
    let during = login(&it.auth, "ada", PASSWORD).await.unwrap();
    for token in [&before.token, &elsewhere.token, &during.token] {
        assert_eq!(it.auth.authenticate(token).await.unwrap().account.username, "ada");
    }
    assert_eq!(kind(login(&it.auth, "ada", OTHER).await), ErrorKind::Unauthenticated);
    assert!(it.auth.logout(&before.token).await.unwrap());
    assert!(it.auth.logout(&elsewhere.token).await.unwrap());
    assert_eq!(kind(it.auth.authenticate(&before.token).await), ErrorKind::Unauthenticated);
    it.heal().await;
    it.refuse(&before.token).await;
    it.refuse(&elsewhere.token).await;
    it.accept(&during.token).await;
}

#[tokio::test]
async fn changed_password_holds_after_the_outage_and_ends_sessions_elsewhere() {
    let it = Processes::start().await;
    let elsewhere = login(&it.other, "ada", PASSWORD).await.unwrap();
    it.state.refresh().await.unwrap();
    it.remote.off();
    let during = it.auth.change_password("ada", PASSWORD, OTHER, OPERATOR).await.unwrap();
    assert_eq!(kind(it.auth.authenticate(&elsewhere.token).await), ErrorKind::Unauthenticated);
    let meanwhile = login(&it.other, "ada", PASSWORD).await.unwrap();
    it.heal().await;
    it.refuse(&elsewhere.token).await;
    it.refuse(&meanwhile.token).await;
    it.accept(&during.token).await;
    for auth in [&it.auth, &it.other] {
        assert_eq!(kind(login(auth, "ada", PASSWORD).await), ErrorKind::Unauthenticated);
        login(auth, "ada", OTHER).await.unwrap();
    }
}

#[tokio::test]
async fn disabled_and_deleted_accounts_stay_so_after_the_outage() {
    let it = Processes::start().await;
    let sessions = [
        login(&it.auth, "ada", PASSWORD).await.unwrap().token,
        login(&it.auth, "bob", PASSWORD).await.unwrap().token,
    ];
    let key = it.auth.create_key("bob", "key", None, OPERATOR).await.unwrap();
    it.remote.off();
    it.auth.authenticate(&key.secret).await.unwrap();
    it.auth.change_account("ada", disabled(true), OPERATOR).await.unwrap();
    it.auth.delete_account("bob", OPERATOR).await.unwrap();
    assert_eq!(kind(login(&it.auth, "ada", PASSWORD).await), ErrorKind::Unauthenticated);
    // The other process goes on with both meanwhile.
    let meanwhile = [
        login(&it.other, "ada", PASSWORD).await.unwrap().token,
        login(&it.other, "bob", PASSWORD).await.unwrap().token,
        it.other.create_key("bob", "late", None, OPERATOR).await.unwrap().secret,
        it.other.change_password("ada", PASSWORD, OTHER, OPERATOR).await.unwrap().token,
    ];
    it.heal().await;
    for token in sessions.iter().chain(&meanwhile).chain([&key.secret]) {
        it.refuse(token).await;
    }
    assert!(it.other.account("ada").await.unwrap().unwrap().disabled);
    assert!(it.other.account("bob").await.unwrap().is_none());
    for auth in [&it.auth, &it.other] {
        for (username, password) in [("ada", OTHER), ("bob", PASSWORD)] {
            assert_eq!(kind(login(auth, username, password).await), ErrorKind::Unauthenticated);
        }
    }
}

#[tokio::test]
async fn keys_are_created_and_deleted_during_an_outage() {
    let it = Processes::start().await;
    let old = it.auth.create_key("ada", "old", None, OPERATOR).await.unwrap();
    it.remote.off();
    let new = it.auth.create_key("ada", "new", Some(Duration::from_secs(600)), OPERATOR).await.unwrap();
    it.auth.delete_key("ada", old.key.id, OPERATOR).await.unwrap();
    assert_eq!(kind(it.auth.authenticate(&old.secret).await), ErrorKind::Unauthenticated);
    assert_eq!(it.auth.keys("ada", None, 10).await.unwrap().items.len(), 1);
    it.heal().await;
    it.refuse(&old.secret).await;
    it.accept(&new.secret).await;
    assert_eq!(it.other.keys("ada", None, 10).await.unwrap().items.len(), 1);
}

#[tokio::test]
async fn what_another_process_disabled_or_deleted_meanwhile_stays_so() {
    let it = Processes::start().await;
    it.remote.off();
    let sessions = [
        login(&it.auth, "ada", PASSWORD).await.unwrap().token,
        it.auth.change_password("bob", PASSWORD, OTHER, OPERATOR).await.unwrap().token,
        it.auth.create_key("bob", "key", None, OPERATOR).await.unwrap().secret,
    ];
    it.other.change_account("ada", disabled(true), OPERATOR).await.unwrap();
    it.other.delete_account("bob", OPERATOR).await.unwrap();
    it.heal().await;
    for token in &sessions {
        it.refuse(token).await;
    }
    assert!(it.other.account("bob").await.unwrap().is_none());
    it.other.change_account("ada", disabled(false), OPERATOR).await.unwrap();
    it.refuse(&sessions[0]).await;
}

#[tokio::test]
async fn later_password_wins_and_all_sessions_end_if_both_processes_changed_it() {
    for ours_is_later in [false, true] {
        let it = Processes::start().await;
        it.remote.off();
        it.auth.account("ada").await.unwrap();
        let ours = async || it.auth.change_password("ada", PASSWORD, OTHER, OPERATOR).await.unwrap();
        let theirs = async || it.other.change_password("ada", PASSWORD, THIRD, OPERATOR).await.unwrap();
        let (first, second) =
            if ours_is_later { (theirs().await, ours().await) } else { (ours().await, theirs().await) };
        it.heal().await;
        it.refuse(&first.token).await;
        it.refuse(&second.token).await;
        let (valid, invalid) = if ours_is_later { (OTHER, THIRD) } else { (THIRD, OTHER) };
        login(&it.other, "ada", valid).await.unwrap();
        assert_eq!(kind(login(&it.other, "ada", invalid).await), ErrorKind::Unauthenticated);
    }
}

#[tokio::test]
async fn account_whose_name_was_taken_meanwhile_is_dropped_with_its_session() {
    let it = Processes::start().await;
    let attempt = |username| LoginAttempt { username, password: PASSWORD, address: None, request_id: "r-3" };
    it.remote.off();
    let taken = it.auth.register(attempt("eve")).await.unwrap();
    let free = it.auth.register(attempt("fay")).await.unwrap();
    let theirs = it.other.register(attempt("Eve")).await.unwrap();
    it.heal().await;
    it.refuse(&taken.token).await;
    it.accept(&free.token).await;
    it.accept(&theirs.token).await;
    assert_eq!(it.auth.account("eve").await.unwrap().unwrap().id, theirs.account.id);
}

#[tokio::test]
async fn failed_logins_of_all_processes_count_after_the_outage() {
    let it = Processes::start().await;
    it.remote.off();
    for _ in 0..5 {
        assert_eq!(kind(login(&it.auth, "ada", OTHER).await), ErrorKind::Unauthenticated);
        assert_eq!(kind(login(&it.other, "ada", OTHER).await), ErrorKind::Unauthenticated);
    }
    it.heal().await;
    assert!(matches!(kind(login(&it.other, "ada", PASSWORD).await), ErrorKind::RateLimited { .. }));
    login(&it.other, "bob", PASSWORD).await.unwrap();
}

#[tokio::test]
async fn limit_of_failed_logins_holds_during_an_outage() {
    let it = Processes::start().await;
    it.remote.off();
    for _ in 0..10 {
        assert_eq!(kind(login(&it.auth, "ada", OTHER).await), ErrorKind::Unauthenticated);
    }
    assert!(matches!(kind(login(&it.auth, "ada", PASSWORD).await), ErrorKind::RateLimited { .. }));
}

#[tokio::test]
async fn audit_log_gets_the_changes_of_the_outage_and_cannot_be_read_during_it() {
    let it = Processes::start().await;
    it.remote.off();
    it.auth.change_account("ada", disabled(true), OPERATOR).await.unwrap();
    let listed = it.auth.audit().list(&AuditFilter::default(), None, 10).await;
    assert_eq!(kind(listed), ErrorKind::Unavailable);
    it.heal().await;
    let listed = it.other.audit().list(&AuditFilter::default(), None, 10).await.unwrap();
    assert!(
        listed.items.iter().any(|entry| entry.target == "ada" && entry.action.name() == "account.change")
    );
}

#[tokio::test]
async fn admin_who_was_disabled_meanwhile_gave_no_rights() {
    let it = Processes::start().await;
    let eve = add(&it.other, "eve", Role::Admin).await.unwrap();
    it.state.refresh().await.unwrap();
    it.remote.off();
    let by = eve.by("r-4");
    let new =
        NewAccount { username: "mallory", password: OTHER, role: Role::Admin, must_change_password: false };
    it.auth.create_account(new, by).await.unwrap();
    it.auth
        .change_account("ada", AccountChange { role: Some(Role::Admin), disabled: None }, by)
        .await
        .unwrap();
    it.auth.reset_password("admin", OTHER, by).await.unwrap();
    it.auth.change_account("bob", disabled(true), by).await.unwrap();
    it.other.change_account("eve", disabled(true), OPERATOR).await.unwrap();
    it.heal().await;
    assert!(it.other.account("mallory").await.unwrap().is_none());
    assert_eq!(it.other.account("ada").await.unwrap().unwrap().role, Role::User);
    assert_eq!(kind(login(&it.other, "admin", OTHER).await), ErrorKind::Unauthenticated);
    login(&it.other, "admin", PASSWORD).await.unwrap();
    assert!(it.other.account("bob").await.unwrap().unwrap().disabled, "what takes rights away stays");
}

#[tokio::test]
async fn logout_holds_after_a_restart_during_the_outage() {
    let it = Processes::start().await;
    let session = login(&it.auth, "ada", PASSWORD).await.unwrap();
    it.remote.off();
    assert!(it.auth.logout(&session.token).await.unwrap());
    let Processes { auth, other, state, remote, folder } = it;
    drop(auth);
    kill(state).await;
    let state = open(&remote, folder.path()).await;
    let auth = auth_over(Arc::clone(&state) as _);
    assert_eq!(kind(auth.authenticate(&session.token).await), ErrorKind::Unauthenticated);
    assert_eq!(kind(login(&auth, "ada", PASSWORD).await), ErrorKind::Unavailable);
    other.authenticate(&session.token).await.unwrap();
    let it = Processes { auth, other, state, remote, folder };
    it.heal().await;
    it.refuse(&session.token).await;
}

/// The store applied a revocation, and leaves before its answer arrives. Meanwhile this process goes on from memory.
#[tokio::test]
async fn revocation_that_is_answered_during_an_outage_holds_in_memory() {
    let it = Processes::start().await;
    let session = login(&it.auth, "bob", PASSWORD).await.unwrap();
    it.remote.hold_answers();
    let calls = [it.auth.clone(), it.auth.clone()];
    let token = session.token.clone();
    let [first, second] = calls;
    let logout = tokio::spawn(async move { first.logout(&token).await });
    let disable = tokio::spawn(async move { second.change_account("ada", disabled(true), OPERATOR).await });
    it.remote.wait_for_held(2).await;
    it.remote.off();
    let during = it.auth.change_password("ada", PASSWORD, OTHER, OPERATOR).await.unwrap();
    it.auth.authenticate(&during.token).await.unwrap();
    it.auth.authenticate(&session.token).await.unwrap();
    it.remote.release_answers();
    assert!(logout.await.unwrap().unwrap());
    disable.await.unwrap().unwrap();
    assert!(!it.state.status().await.is_remote_used);
    for token in [&session.token, &during.token] {
        assert_eq!(kind(it.auth.authenticate(token).await), ErrorKind::Unauthenticated);
    }
    assert_eq!(kind(login(&it.auth, "ada", OTHER).await), ErrorKind::Unauthenticated);
    it.heal().await;
    for token in [&session.token, &during.token] {
        it.refuse(token).await;
    }
    it.auth.change_account("ada", disabled(false), OPERATOR).await.unwrap();
    login(&it.other, "ada", OTHER).await.unwrap();
}

/// The answers are lost: the store applied everything, and this process does not know.
#[tokio::test]
async fn unanswered_calls_are_acknowledged_and_applied_once() {
    let it = Processes::start().await;
    let old = login(&it.auth, "ada", PASSWORD).await.unwrap();
    it.remote.lose_answers();
    let new = it.auth.change_password("ada", PASSWORD, OTHER, OPERATOR).await.unwrap();
    it.heal().await;
    it.refuse(&old.token).await;
    it.accept(&new.token).await;
}

#[tokio::test]
async fn first_admin_is_not_seeded_again_after_an_outage() {
    let it = Processes::start().await;
    it.remote.off();
    assert!(it.auth.is_initialised().await.unwrap());
    assert!(!it.auth.initialise(OTHER, false).await.unwrap());
    it.heal().await;
    assert_eq!(kind(login(&it.other, "admin", OTHER).await), ErrorKind::Unauthenticated);
}

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lkr_auth::{
    Account, AccountChange, Actor, AuditAction, AuditEntry, AuditFilter, Auth, AuthOptions, Error, ErrorKind,
    Login, LoginAttempt, NewAccount, Result, Role,
};
use lkr_state::{
    Expect, FailingState, FaultFuture, MemoryState, ScanOrder, StateStore, StateStoreExt, Write,
};

pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const OTHER: &str = "another long password";
pub(crate) const OPERATOR: Actor<'static> = Actor { actor: "operator", account_id: None, request_id: "r-1" };

pub(crate) fn options() -> AuthOptions {
    AuthOptions {
        iterations: 1_000,
        session_ttl: Duration::from_secs(60),
        max_concurrent_hashes: 2,
        ..AuthOptions::default()
    }
}

pub(crate) async fn auth_with_admin() -> (Auth, Arc<dyn StateStore>) {
    auth_over(Arc::new(MemoryState::default()), &options()).await
}

pub(crate) async fn auth_over(
    state: Arc<dyn StateStore>,
    options: &AuthOptions,
) -> (Auth, Arc<dyn StateStore>) {
    let auth = Auth::new(Arc::clone(&state), options).unwrap();
    assert!(auth.initialise(PASSWORD, false).await.unwrap());
    (auth, state)
}

pub(crate) fn kind_of<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("the call fails").kind()
}

pub(crate) fn by(actor: &str) -> Actor<'_> {
    Actor { actor, account_id: None, request_id: "r-2" }
}

pub(crate) fn attempt<'a>(username: &'a str, password: &'a str) -> LoginAttempt<'a> {
    LoginAttempt { username, password, address: None, request_id: "r-3" }
}

pub(crate) async fn login(auth: &Auth, username: &str, password: &str) -> Result<Login> {
    auth.login(attempt(username, password)).await
}

/// Creates an account with [`PASSWORD`] that need not be changed.
pub(crate) async fn add(auth: &Auth, username: &str, role: Role) -> Account {
    let new = NewAccount { username, password: PASSWORD, role, must_change_password: false };
    auth.create_account(new, OPERATOR).await.unwrap()
}

pub(crate) fn role(role: Role) -> AccountChange {
    AccountChange { role: Some(role), disabled: None }
}

pub(crate) fn disabled(disabled: bool) -> AccountChange {
    AccountChange { role: None, disabled: Some(disabled) }
}

pub(crate) async fn enabled_admins(auth: &Auth) -> usize {
    let accounts = auth.accounts(None, 1000).await.unwrap().items;
    accounts.iter().filter(|account| account.role == Role::Admin && !account.disabled).count()
}

/// All audit entries, newest first.
pub(crate) async fn entries(auth: &Auth) -> Vec<AuditEntry> {
    auth.audit().list(&AuditFilter::default(), None, 1000).await.unwrap().items
}

pub(crate) async fn actions(auth: &Auth) -> Vec<AuditAction> {
    entries(auth).await.iter().map(|entry| entry.action).collect()
}

/// Every key and value of the store.
pub(crate) async fn all_records(state: &dyn StateStore) -> Vec<(String, String)> {
    let records = state.scan("", None, ScanOrder::Ascending, 10_000).await.unwrap();
    records
        .into_iter()
        .map(|(key, record)| (key, String::from_utf8_lossy(&record.value).into_owned()))
        .collect()
}

/// A store that yields a pseudo-random number of times before each operation, so that concurrent calls interleave.
pub(crate) fn interleaving_state(seed: u64) -> Arc<FailingState> {
    let random = AtomicU64::new(seed);
    let yields = move |_: &'static str| -> FaultFuture {
        let step = random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let bits = (step ^ (step >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        Box::pin(async move {
            for _ in 0..bits >> 62 {
                tokio::task::yield_now().await;
            }
            None
        })
    };
    Arc::new(FailingState::with_async_fault(Arc::new(MemoryState::default()), yields))
}

/// A store whose steps take a while, as on a slow disk.
pub(crate) fn slow_state(pause: Duration) -> Arc<FailingState> {
    let slow = move |operation: &'static str| -> FaultFuture {
        Box::pin(async move {
            if operation == "apply" {
                tokio::time::sleep(pause).await;
            }
            None
        })
    };
    Arc::new(FailingState::with_async_fault(Arc::new(MemoryState::default()), slow))
}

/// Runs a given future right before the next step of a store.
#[derive(Clone, Default)]
pub(crate) struct RaceInjector(Arc<Mutex<Option<FaultFuture>>>);

impl RaceInjector {
    /// The store `inner` with injected races.
    pub(crate) fn store(&self, inner: Arc<dyn StateStore>) -> Arc<FailingState> {
        let injector = Self::clone(self);
        let hook = move |operation: &'static str| -> FaultFuture {
            let rival = (operation == "apply").then(|| injector.0.lock().unwrap().take()).flatten();
            rival.unwrap_or_else(|| Box::pin(std::future::ready(None)))
        };
        Arc::new(FailingState::with_async_fault(inner, hook))
    }

    /// Runs `rival` before the next step.
    pub(crate) fn before_next_step(&self, rival: impl Future<Output = ()> + Send + 'static) {
        *self.0.lock().unwrap() = Some(Box::pin(async {
            rival.await;
            None
        }));
    }
}

/// Changes the stored account, as another version of this crate or another process would.
pub(crate) async fn change_record(
    state: &dyn StateStore,
    name: &str,
    change: impl FnOnce(&mut serde_json::Value),
) {
    let key = format!("auth/account/{name}");
    let record = state.get(&key).await.unwrap().unwrap();
    let mut value: serde_json::Value = serde_json::from_slice(&record.value).unwrap();
    change(&mut value);
    state.apply(vec![Write::put(key, Expect::Any, value.to_string())]).await.unwrap();
}

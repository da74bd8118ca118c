use std::{
    fmt,
    path::Path,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_auth::{
    Account, AccountChange, Attempt, AuditAction, AuditEntry, AuditFilter, Auth, AuthOptions, By, Error,
    ErrorKind, Login, NewAccount, Result, Role,
};
use lkr_state::{Expect, Key, MemoryState, Order, Record, StateStore, StateStoreExt, Write};

pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) const OTHER: &str = "another long password";
pub(crate) const OPERATOR: By<'static> = By { actor: "operator", account_id: None, request_id: "r-1" };

pub(crate) fn options() -> AuthOptions {
    AuthOptions {
        iterations: 1_000,
        session_ttl: Duration::from_secs(60),
        hashes_at_once: 2,
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

pub(crate) fn kind<T>(result: Result<T, Error>) -> ErrorKind {
    result.err().expect("it is refused").kind()
}

pub(crate) fn by(actor: &str) -> By<'_> {
    By { actor, account_id: None, request_id: "r-2" }
}

pub(crate) fn attempt<'a>(username: &'a str, password: &'a str) -> Attempt<'a> {
    Attempt { username, password, address: None, request_id: "r-3" }
}

pub(crate) async fn login(auth: &Auth, username: &str, password: &str) -> Result<Login> {
    auth.login(attempt(username, password)).await
}

/// Makes an account with [`PASSWORD`] that need not change it.
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

/// All entries, the newest first.
pub(crate) async fn entries(auth: &Auth) -> Vec<AuditEntry> {
    auth.audit().list(&AuditFilter::default(), None, 1000).await.unwrap().items
}

pub(crate) async fn actions(auth: &Auth) -> Vec<AuditAction> {
    entries(auth).await.iter().map(|entry| entry.action).collect()
}

/// Every key and value of the store.
pub(crate) async fn everything(state: &dyn StateStore) -> Vec<(String, String)> {
    let records = state.scan("", None, Order::Ascending, 10_000).await.unwrap();
    records
        .into_iter()
        .map(|(key, record)| (key, String::from_utf8_lossy(&record.value).into_owned()))
        .collect()
}

/// A store that lets others go first, now this one, now that one, so that what happens at once is mixed.
#[derive(Debug)]
pub(crate) struct Mixing {
    inner: MemoryState,
    random: AtomicU64,
}

impl Mixing {
    pub(crate) fn new(seed: u64) -> Self {
        Self { inner: MemoryState::default(), random: AtomicU64::new(seed) }
    }

    async fn mix(&self) {
        let step = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let bits = (step ^ (step >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        for _ in 0..bits >> 62 {
            tokio::task::yield_now().await;
        }
    }
}

#[async_trait]
impl StateStore for Mixing {
    async fn get_many(&self, keys: &[Key]) -> lkr_state::Result<Vec<Option<Record>>> {
        self.mix().await;
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> lkr_state::Result<()> {
        self.mix().await;
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: Order,
        limit: usize,
    ) -> lkr_state::Result<Vec<(Key, Record)>> {
        self.mix().await;
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> lkr_state::Result<()> {
        Ok(())
    }
}

type Hook = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A store in which something else comes first, right before the next step is done.
pub(crate) struct Overtaken {
    inner: Arc<dyn StateStore>,
    hook: Mutex<Option<Hook>>,
}

impl Overtaken {
    pub(crate) fn new(inner: Arc<dyn StateStore>) -> Arc<Self> {
        Arc::new(Self { inner, hook: Mutex::new(None) })
    }

    /// Lets `hook` come before the next step.
    pub(crate) fn by(&self, hook: impl Future<Output = ()> + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::pin(hook));
    }
}

impl fmt::Debug for Overtaken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overtaken").finish_non_exhaustive()
    }
}

#[async_trait]
impl StateStore for Overtaken {
    async fn get_many(&self, keys: &[Key]) -> lkr_state::Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).await
    }

    async fn apply(&self, writes: Vec<Write>) -> lkr_state::Result<()> {
        let hook = self.hook.lock().unwrap().take();
        if let Some(hook) = hook {
            hook.await;
        }
        self.inner.apply(writes).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: Order,
        limit: usize,
    ) -> lkr_state::Result<Vec<(Key, Record)>> {
        self.inner.scan(prefix, after, order, limit).await
    }

    async fn snapshot(&self, to: &Path) -> lkr_state::Result<()> {
        self.inner.snapshot(to).await
    }

    async fn health(&self) -> lkr_state::Result<()> {
        self.inner.health().await
    }
}

/// Changes the stored account, as a later version of this crate or another process would.
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

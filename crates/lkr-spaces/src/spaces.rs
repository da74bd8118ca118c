use std::{
    fmt,
    sync::{Arc, PoisonError, RwLock},
};

use lkr_domain::{Clock, SpaceName, SystemClock};
use lkr_state::{Expect, Op, StateStore, StateStoreExt, Write, retry_on_conflict};
use tokio::sync::Mutex;

use crate::{
    Directory, Result, Space,
    load::{load, version},
    records::{VERSION, admissions_key, closed_key, encode_space, space_key},
};

/// Spaces, groups and members over a state store. Cheap to clone.
///
/// Every change is one step of the store together with `alongside`, the writes that the caller adds, for example its
/// audit entry. A change that makes no difference writes nothing, not even these.
#[derive(Clone)]
pub struct Spaces {
    pub(crate) state: Arc<dyn StateStore>,
    pub(crate) clock: Arc<dyn Clock>,
    cache: Arc<Cache>,
}

/// The directory that was read last.
#[derive(Default)]
struct Cache {
    directory: RwLock<Option<Arc<Directory>>>,
    /// Held while the directory is read, so that concurrent requests after a change read it once.
    reading: Mutex<()>,
}

impl fmt::Debug for Spaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spaces").finish_non_exhaustive()
    }
}

impl Spaces {
    /// The spaces in `state`.
    #[must_use]
    pub fn new(state: Arc<dyn StateStore>) -> Self {
        Self { state, clock: Arc::new(SystemClock), cache: Arc::default() }
    }

    /// The same spaces with another clock than the system's.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// The current directory. It reads one record, and the others only if there was a change since the last call. So a
    /// right that was taken away, by any process on the store, is gone at the next call.
    ///
    /// # Errors
    /// `Contention` if changes never pause, `Corrupt` if a record cannot be read.
    pub async fn directory(&self) -> Result<Arc<Directory>> {
        if let Some(current) = self.cached(version(&*self.state).await?) {
            return Ok(current);
        }
        let _reading = self.cache.reading.lock().await;
        // Another call may have read the directory while this one waited.
        if let Some(current) = self.cached(version(&*self.state).await?) {
            return Ok(current);
        }
        let directory = Arc::new(load(&*self.state).await?);
        let mut cached = self.cache.directory.write().unwrap_or_else(PoisonError::into_inner);
        *cached = Some(Arc::clone(&directory));
        Ok(directory)
    }

    fn cached(&self, version: Option<u64>) -> Option<Arc<Directory>> {
        let cached = self.cache.directory.read().unwrap_or_else(PoisonError::into_inner);
        cached.as_ref().filter(|directory| directory.version == version).map(Arc::clone)
    }

    /// Stores the default space with the present time, unless it is stored. It exists without this too.
    pub async fn ensure_default(&self) -> Result<()> {
        let change = |directory: &Directory| {
            let name = SpaceName::default();
            let is_stored = directory.space(&name).is_some_and(|space| space.created_at.unix_timestamp() > 0);
            if is_stored {
                return Ok(((), Vec::new()));
            }
            let space = Space::built_in(self.clock.now());
            Ok(((), vec![put_space(&space)?]))
        };
        self.update("create default space", &[], change).await
    }

    /// The writes that a step must contain which adds a document to a space, or moves one there. The step conflicts with
    /// a deletion of the space, which closes it first, and makes a deletion fail that saw the space without this document.
    #[must_use]
    pub fn admit(name: &SpaceName) -> [Write; 2] {
        [Write::check(closed_key(name), Expect::Absent), Write::increment(admissions_key(name))]
    }

    /// The check that no step [admits](Self::admit) a document to the space from now on. Count its documents after this
    /// call, and pass the check to [`delete_empty`](Self::delete_empty).
    pub async fn check_no_admission(&self, name: &SpaceName) -> Result<Write> {
        let key = admissions_key(name);
        let admissions = self.state.get(&key).await?;
        Ok(Write::check(key, admissions.map_or(Expect::Absent, |record| Expect::Version(record.version))))
    }

    /// Applies the writes that `change` returns, and those alongside, as one step. If another change came first, `change`
    /// runs again on the new directory. Without writes, nothing is applied.
    pub(crate) async fn update<T>(
        &self,
        operation: &'static str,
        alongside: &[Write],
        change: impl Fn(&Directory) -> Result<(T, Vec<Write>)>,
    ) -> Result<T> {
        retry_on_conflict(&*self.state, operation, || async {
            let directory = self.directory().await?;
            let (result, writes) = change(&directory)?;
            if writes.is_empty() {
                return Ok(result);
            }
            let expect = directory.version.map_or(Expect::Absent, Expect::Version);
            let mut step = vec![Write { key: VERSION.to_owned(), expect, op: Op::Increment }];
            step.extend(writes);
            step.extend_from_slice(alongside);
            self.state.apply(step).await?;
            Ok(result)
        })
        .await
    }
}

/// The write that stores a space. Its step expects the version of the whole directory.
pub(crate) fn put_space(space: &Space) -> Result<Write> {
    Ok(Write::put(space_key(&space.name), Expect::Any, encode_space(space)?))
}

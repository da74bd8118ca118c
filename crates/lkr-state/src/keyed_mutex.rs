use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

use tokio::sync::{Mutex, MutexGuard};

/// The number of locks.
const STRIPES: usize = 1024;

/// A set of locks, one of which is picked by the hash of a key (striped locking).
///
/// It serialises changes of the same records within a process; without it, most of their compare-and-sets would conflict.
/// Two keys may share a lock, so a task that holds a guard must not lock another key: it could wait for itself. Clones
/// share the same locks and are cheap.
#[derive(Debug, Clone)]
pub struct KeyedMutex {
    stripes: Arc<[Mutex<()>]>,
    /// Random hash keys, so that a client cannot choose keys that share a lock.
    hash_keys: RandomState,
}

impl Default for KeyedMutex {
    fn default() -> Self {
        let stripes = std::iter::repeat_with(Mutex::default).take(STRIPES).collect();
        Self { stripes, hash_keys: RandomState::new() }
    }
}

impl KeyedMutex {
    /// Locks `key`; dropping the guard unlocks it.
    pub async fn lock(&self, key: impl Hash) -> Option<MutexGuard<'_, ()>> {
        let stripe = usize::try_from(self.hash_keys.hash_one(key) % STRIPES as u64).unwrap_or_default();
        // The index is below the number of stripes, so this is never `None`.
        Some(self.stripes.get(stripe)?.lock().await)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Context};

    use super::*;

    #[tokio::test]
    async fn second_lock_of_a_key_waits_for_the_first() {
        let mutex = KeyedMutex::default();
        let first = mutex.lock("a").await;
        assert!(first.is_some());
        let clone = mutex.clone();
        let mut second = pin!(clone.lock("a"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }
}

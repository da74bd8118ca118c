use std::{
    hash::{BuildHasher, Hash, RandomState},
    sync::Arc,
};

use tokio::sync::{Mutex, MutexGuard};

/// How many locks there are.
const STRIPES: usize = 1024;

/// Lets those of one process that change the same thing go one after another, where a compare-and-set alone would make
/// most of them try in vain. Two things may share a lock, and then wait for each other; whoever holds a turn must not
/// ask for another. Cheap to clone; all clones are one.
#[derive(Debug, Clone)]
pub struct KeyedMutex {
    stripes: Arc<[Mutex<()>]>,
    /// Nobody can choose a thing that shares the lock of another.
    random: RandomState,
}

impl Default for KeyedMutex {
    fn default() -> Self {
        let stripes = std::iter::repeat_with(Mutex::default).take(STRIPES).collect();
        Self { stripes, random: RandomState::new() }
    }
}

impl KeyedMutex {
    /// Waits until nobody else is at `thing`; the turn ends when the guard is dropped.
    pub async fn lock(&self, thing: impl Hash) -> Option<MutexGuard<'_, ()>> {
        let stripe = usize::try_from(self.random.hash_one(thing) % STRIPES as u64).unwrap_or_default();
        // There always is one.
        Some(self.stripes.get(stripe)?.lock().await)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::Future, pin::pin, task::Context};

    use super::*;

    #[tokio::test]
    async fn one_waits_for_the_other() {
        let turns = KeyedMutex::default();
        let first = turns.lock("a").await;
        assert!(first.is_some());
        let same = turns.clone();
        let mut second = pin!(same.lock("a"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        assert!(second.as_mut().poll(&mut cx).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut cx).is_ready());
    }
}

use std::sync::{Arc, Mutex};

use lkr_domain::Clock;
use time::OffsetDateTime;
use uuid::{ContextV7, Timestamp, Uuid};

use crate::StateStore;

/// The [clock of a store](StateStore::now), so that the times and ids of several processes have one order, whatever the clocks of
/// their machines show.
#[derive(Debug)]
pub struct StoreClock {
    state: Arc<dyn StateStore>,
    /// Makes the ids of one millisecond grow.
    context: Mutex<ContextV7>,
}

impl StoreClock {
    /// The clock of `state`.
    #[must_use]
    pub fn new(state: Arc<dyn StateStore>) -> Self {
        Self { state, context: Mutex::new(ContextV7::new()) }
    }
}

impl Clock for StoreClock {
    fn now(&self) -> OffsetDateTime {
        self.state.now()
    }

    fn new_uuid(&self) -> Uuid {
        let now = self.now();
        let seconds = now.unix_timestamp().try_into().unwrap_or_default();
        Uuid::new_v7(Timestamp::from_unix(&self.context, seconds, now.nanosecond()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryState;

    #[test]
    fn ids_grow_and_tell_the_time() {
        let clock = StoreClock::new(Arc::new(MemoryState::new()));
        let ids: Vec<Uuid> = (0..10_000).map(|_| clock.new_uuid()).collect();
        assert!(ids.is_sorted_by(|one, next| one < next));
        let (seconds, _) = ids[0].get_timestamp().unwrap().to_unix();
        assert!(clock.now().unix_timestamp().abs_diff(seconds.try_into().unwrap()) < 60);
    }
}

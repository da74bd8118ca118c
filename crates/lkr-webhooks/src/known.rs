use std::{
    collections::BTreeSet,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{EventKind, records::Hooks};

/// What somebody wants to hear, as far as this process knows. As long as it does not, that is everything.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<Knowledge>);

#[derive(Debug, Default)]
struct Knowledge {
    wanted: Option<BTreeSet<EventKind>>,
    /// What was read of an earlier version may have been overtaken.
    since: u64,
}

impl Known {
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.lock().wanted.as_ref().is_none_or(|wanted| wanted.contains(&kind))
    }

    /// Forgets what is known, because `hooks` are about to be changed: from here on only their successors count.
    pub(crate) fn forget(&self, hooks: &Hooks) {
        let mut known = self.lock();
        known.wanted = None;
        known.since = known.since.max(hooks.version() + 1);
    }

    pub(crate) fn learn(&self, hooks: &Hooks) {
        let mut known = self.lock();
        if hooks.version() < known.since {
            return;
        }
        let wanted = EventKind::ALL.into_iter();
        let wanted = wanted.filter(|kind| hooks.all.iter().any(|hook| hook.hears(kind.name())));
        *known = Knowledge { wanted: Some(wanted.collect()), since: hooks.version() };
    }

    /// Nothing is told, because who wants to hear it cannot be read.
    pub(crate) fn mute(&self) {
        self.lock().wanted = Some(BTreeSet::new());
    }

    fn lock(&self) -> MutexGuard<'_, Knowledge> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

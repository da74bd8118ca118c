//! Pausing garbage collection in all processes.

use std::time::Duration;

use lkr_state::{Expect, ScanOrder, Write};
use uuid::Uuid;

use crate::{Catalog, Result, key};

impl Catalog {
    /// Pauses garbage collection in all processes until `pause` ends it or `lifetime` has passed; repeated, it begins anew.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn pause_gc(&self, pause: Uuid, lifetime: Duration) -> Result<()> {
        let write = Write::put_for(key::gc_pause(pause), Expect::Any, "", lifetime);
        Ok(self.state.apply(vec![write]).await?)
    }

    /// Ends a pause.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn end_gc_pause(&self, pause: Uuid) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(key::gc_pause(pause), Expect::Any)]).await?)
    }

    /// Whether garbage collection is paused by any process. A collector asks after it found what is garbage: what was garbage
    /// before a pause is not needed by it.
    ///
    /// # Errors
    /// Those of the state store.
    pub async fn is_gc_paused(&self) -> Result<bool> {
        Ok(!self.state.scan(key::GC_PAUSES, None, ScanOrder::Ascending, 1).await?.is_empty())
    }
}

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use time::OffsetDateTime;
use tracing::{Instrument, debug_span};

use crate::{Key, Record, Result, Scan, ScanOrder, StateStore, Write};

/// A decorator that runs each operation in a span of its own, at the level `debug`. Spans contain counts and no contents.
#[derive(Debug)]
pub struct TracedState {
    inner: Arc<dyn StateStore>,
}

impl TracedState {
    /// Wraps `inner`.
    #[must_use]
    pub const fn new(inner: Arc<dyn StateStore>) -> Self {
        Self { inner }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for TracedState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.inner.get_many(keys).instrument(debug_span!("state.get", keys = keys.len())).await
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        let span = debug_span!("state.apply", writes = writes.len());
        self.inner.apply(writes).instrument(span).await
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let span = debug_span!("state.scan", limit);
        self.inner.scan(prefix, after, order, limit).instrument(span).await
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let span = debug_span!("state.scan_many", scans = scans.len());
        self.inner.scan_many(scans).instrument(span).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.inner.snapshot(to).instrument(debug_span!("state.snapshot")).await
    }

    async fn health(&self) -> Result<()> {
        self.inner.health().instrument(debug_span!("state.health")).await
    }

    fn now(&self) -> OffsetDateTime {
        self.inner.now()
    }

    fn report_contention(&self, operation: &'static str) {
        self.inner.report_contention(operation);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::TracedState;
    use crate::{MemoryState, StateStore};

    async fn state() -> (Arc<dyn StateStore>, ()) {
        (Arc::new(TracedState::new(Arc::new(MemoryState::new()))), ())
    }

    mod suite {
        crate::state_store_suite!(super::state());
    }
}

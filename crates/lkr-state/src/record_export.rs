//! Reading all records as they are at one moment.

use std::fmt::Debug;

use async_trait::async_trait;
use bytes::Bytes;

use crate::{Key, Result};

/// A store whose records can be read as they are at one moment, for backups. [`StateStore::scan`](crate::StateStore::scan) reads
/// pages of different moments.
#[async_trait]
pub trait RecordExport: Debug + Send + Sync + 'static {
    /// Gives `sink` all records that have not expired, as they are at one moment between the call and its return. Reads and
    /// writes continue meanwhile. Records come in no order, and one may come twice with the same value.
    ///
    /// # Errors
    /// Those of the store, and the first one of the sink, which is called no more then.
    async fn export(&self, sink: &mut dyn RecordSink) -> Result<()>;
}

/// Receives the records of a [`RecordExport`].
#[async_trait]
pub trait RecordSink: Send {
    /// Receives keys and values. Until it returns, at most some megabytes more are read.
    ///
    /// # Errors
    /// Why no more can be received.
    async fn add(&mut self, records: Vec<(Key, Bytes)>) -> Result<()>;
}

#![doc = include_str!("../README.md")]

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod error;
#[cfg(any(test, feature = "conformance"))]
mod failing;
mod fair;
mod fenced_queue;
mod keyed_mutex;
mod memory;
mod merge_policy;
mod peers;
mod process_id;
mod queue;
mod record_export;
mod remembered_claims;
mod retry_on_conflict;
mod store;
mod store_clock;
mod traced;

pub use error::{Error, ErrorKind, RecordsLost, Result, disk_is_full};
#[cfg(any(test, feature = "conformance"))]
pub use failing::{FailingQueue, FailingState, FaultFuture};
pub use fair::{BASE_COST, FairTags};
pub use fenced_queue::FencedQueue;
pub use keyed_mutex::KeyedMutex;
pub use memory::{MemoryQueue, MemoryState};
pub use merge_policy::{MergePolicy, Merged, OfflineChange};
pub use peers::{PeerOptions, Peers};
pub use process_id::{Process, ProcessId};
pub use queue::{Claim, Lane, TaskQueue, Work};
pub use record_export::{RecordExport, RecordSink};
pub use remembered_claims::RememberedClaims;
pub use retry_on_conflict::{
    ConflictError, ContentionObserver, MAX_ATTEMPTS, ObservedState, contention_reason, retry_on_conflict,
};
pub use store::{Expect, Key, Op, Record, Scan, ScanOrder, StateStore, StateStoreExt, Write};
pub use store_clock::StoreClock;
pub use traced::TracedState;

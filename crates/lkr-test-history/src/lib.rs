#![doc = include_str!("../README.md")]

mod anomaly;
mod clock;
mod documents;
mod finding;
mod graph;
mod history;
mod proxy;
mod queue;
mod record;
mod reply;
mod revocations;
mod state;

pub use anomaly::{Anomaly, AnomalyKind};
pub use clock::Clock;
pub use documents::{Answer, DocumentCall, DocumentOperation, Ended, Shown, check_documents};
pub use finding::{Finding, FindingKind};
pub use history::{Call, Change, Expect, Operation, Outcome, Seen, Write};
pub use proxy::Proxy;
pub use queue::{LeaseTimes, check_queue};
pub use record::{Recorder, load, now};
pub use revocations::{AccountCall, AccountOperation, Away, check_revocations};
pub use state::check_state;

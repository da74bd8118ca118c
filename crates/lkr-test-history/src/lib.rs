#![doc = include_str!("../README.md")]

mod anomaly;
mod graph;
mod history;
mod queue;
mod record;
mod state;

pub use anomaly::{Anomaly, AnomalyKind};
pub use history::{Call, Change, Expect, Operation, Outcome, Seen, Write};
pub use queue::{LeaseTimes, check_queue};
pub use record::{Recorder, load, now};
pub use state::check_state;

#![doc = include_str!("../README.md")]

mod anomaly;
mod clock;
mod graph;
mod history;
mod proxy;
mod queue;
mod record;
mod reply;
mod state;

pub use anomaly::{Anomaly, AnomalyKind};
pub use clock::Clock;
pub use history::{Call, Change, Expect, Operation, Outcome, Seen, Write};
pub use proxy::Proxy;
pub use queue::{LeaseTimes, check_queue};
pub use record::{Recorder, load, now};
pub use state::check_state;

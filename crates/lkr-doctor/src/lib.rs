#![doc = include_str!("../README.md")]

mod checker;
mod documents;
mod finding;
mod misplaced;
mod orphans;
mod points;
mod ports;
mod records;
mod references;
mod repair;

pub use checker::examine;
pub use finding::{Finding, RepairOutcome, Report};
pub use ports::{Ports, ReadRecord, Repairer};
pub use repair::RepairAction;

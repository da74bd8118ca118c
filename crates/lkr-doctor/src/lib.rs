#![doc = include_str!("../README.md")]

mod checker;
mod documents;
mod finding;
mod lost;
mod misplaced;
mod orphans;
mod points;
mod ports;
mod records;
mod references;
mod repair;
mod restore;
mod spaces;

pub use checker::examine;
pub use finding::{Finding, RepairOutcome, Report};
pub use ports::{Ports, ReadDeletion, ReadRecord, Repairer, Restorer};
pub use repair::RepairAction;

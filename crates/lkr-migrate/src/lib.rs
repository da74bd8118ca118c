#![doc = include_str!("../README.md")]

mod blob;
mod checksum;
mod copy;
mod error;
mod fingerprint;
mod marker;
mod migration;
mod progress;
mod report;
mod retry;
mod stores;
mod table;
mod target;
mod verify;

pub use checksum::Checksum;
pub use copy::{points::alias, records::copies};
pub use error::{Error, ErrorKind, Result};
pub use marker::{UnfinishedMigration, unfinished_migration};
pub use migration::{Migration, is_in_use};
pub use progress::{Phase, Progress, ProgressSink};
pub use report::Report;
pub use stores::{MigrateOptions, Parts, Stores};
pub use table::{Row, TABLE, Treatment, row_of};

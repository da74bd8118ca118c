#![doc = include_str!("../README.md")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test ends where something fails"
)]
#![expect(clippy::print_stderr, reason = "a test says what it skips, and what the server said")]

mod answer;
mod api;
mod binary;
mod damage;
mod form;
mod load;
mod model;
mod raw;
mod receiver;
mod seed;
mod server;
mod settle;
mod small_disk;
mod watch;

pub use answer::Response;
pub use binary::{cli_binary, server_binary, workspace};
pub use damage::damage_graphs;
pub use load::{DocumentVersion, LedgerEntry, Load, Rewrite, RewriteKind, Termination};
pub use model::model_dir;
pub use raw::{exchange, exchange_in_parts, exchange_on};
pub use receiver::{Delivery, Receiver};
pub use seed::Seed;
pub use server::{ADMIN_PASSWORD, Server, free_port};
pub use settle::{ByLayer, assert_consistent, assert_nothing_left, stored};
pub use small_disk::SmallDisk;
pub use watch::WatchedDocuments;

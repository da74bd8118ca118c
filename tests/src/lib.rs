#![doc = include_str!("../README.md")]
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "test helpers panic on failure"
)]
#![expect(clippy::print_stderr, reason = "tests print skips and server logs")]

mod api;
mod command_line;
mod damage;
mod invariants;
mod load;
mod model;
mod raw_http;
mod response;
mod seed;
mod server;
mod shared_stores;
mod small_disk;
mod survey;
mod upload;
mod watched_documents;
mod webhook_receiver;

pub use command_line::{CommandLine, printed};
pub use damage::damage_clusters;
pub use invariants::{
    ByLayer, assert_consistent, assert_doctor_finds_nothing, assert_garbage_collected, open_store, stored,
};
pub use lkr_test_support::{cli_binary, free_port, server_binary, workspace};
pub use load::{DocumentVersion, LedgerEntry, Load, Rewrite, RewriteKind, Termination};
pub use model::model_dir;
pub use raw_http::{send_raw, send_raw_in_parts, send_raw_on};
pub use response::Response;
pub use seed::Seed;
pub use server::{ADMIN_PASSWORD, Server};
pub use shared_stores::{Role, SharedStores};
pub use small_disk::SmallDisk;
pub use survey::{SECTIONS, survey, word};
pub use watched_documents::WatchedDocuments;
pub use webhook_receiver::{Delivery, WebhookReceiver};

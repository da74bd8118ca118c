//! Webhooks on a store in memory. The receivers are real servers on the loopback interface.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by a panic"
)]

mod backlog;
mod clock;
mod create;
mod damage;
mod delivery;
mod log;
mod restart;
mod subscriptions;
mod support;

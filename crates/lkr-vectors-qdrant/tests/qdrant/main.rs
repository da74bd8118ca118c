//! The suite of the port and what it does not cover, on a server in this process and on a real one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests"
)]

mod conformance;
mod filters;
mod outages;
mod proxy;
mod quantized;
mod requests;
mod snapshots;
mod support;

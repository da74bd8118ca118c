//! Outages of a remote store.

mod accounts;
mod kills;
mod outages;
mod random;
mod suite;
mod support;
mod unknown_outcomes;

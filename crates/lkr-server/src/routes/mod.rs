//! The table of routes: which there are, who may call each, what is said of it. The server is built from it, and so is
//! the OpenAPI document. The rows stand beside their handlers.

mod audit;
mod auth;
mod backup;
mod documents;
mod eval;
mod files;
mod keys;
mod knowledge;
mod ops;
mod pages;
mod search;
mod settings;
mod submissions;
mod tasks;
mod users;
mod webhooks;

pub(crate) use submissions::Flags;

use crate::http::Endpoint;

/// Every route there is. Fixed paths stand before those with a part that varies.
#[must_use]
pub fn endpoints() -> Vec<Endpoint> {
    let groups = [
        auth::rows(),
        keys::rows(),
        users::rows(),
        audit::rows(),
        settings::rows(),
        webhooks::rows(),
        tasks::rows(),
        files::rows(),
        submissions::rows(),
        documents::rows(),
        search::rows(),
        knowledge::rows(),
        eval::rows(),
        backup::rows(),
        ops::rows(),
    ];
    groups.into_iter().flatten().collect()
}

/// More than the longest body of an account's, a key's or a setting's can need.
const SMALL_BODY_BYTES: usize = 64 * 1024;

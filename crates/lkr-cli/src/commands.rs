//! The commands that a person uses every day: each sends requests to a server and prints the answers.

pub(crate) mod account;
pub(crate) mod completions;
pub(crate) mod context;
pub(crate) mod get;
pub(crate) mod groups;
pub(crate) mod keys;
pub(crate) mod ls;
pub(crate) mod rm;
pub(crate) mod search;
pub(crate) mod spaces;
pub(crate) mod status;
pub(crate) mod tasks;
pub(crate) mod users;

mod common;
mod documents;
mod ids;
mod listing;
mod members;
pub(crate) mod query;
mod reference;

pub(crate) use common::Common;
pub(crate) use listing::{List, each_item};

//! Members of spaces and groups.

use anyhow::Result;
use serde_json::Value;

use crate::{
    commands::{each_item, query::QueryString},
    exit::not_found,
    http::Client,
    terminal::field,
};

/// Fails if the listing at `path` has no item whose field `name` is `member`. The service deletes an absent member without an
/// error, but a person who does so has mistyped a name.
pub(crate) fn require(client: &Client, path: &str, name: &str, member: &str, missing: &str) -> Result<()> {
    let mut is_there = false;
    each_item(client, path, &QueryString::default(), None, &mut |item: Value| {
        // The service compares names without regard to case.
        is_there |= field(&item, name).to_lowercase() == member.to_lowercase();
        Ok(())
    })?;
    if is_there { Ok(()) } else { Err(not_found(missing)) }
}

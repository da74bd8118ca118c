//! Ids that a person shortens to their beginning.

use anyhow::Result;
use serde_json::Value;

use crate::{
    commands::{each_item, query::QueryString},
    exit::{not_found, usage},
    http::Client,
    terminal::field,
};

/// The digits of an id.
const LENGTH: usize = 32;

/// The fewest digits that name what has an id.
const MIN_PREFIX: usize = 6;

/// The most ids that an error lists.
pub(crate) const LISTED: usize = 10;

/// Where the ids of one kind are listed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ids {
    /// What has the ids.
    pub(crate) noun: &'static str,
    pub(crate) path: &'static str,
    /// The field of an item with its id.
    pub(crate) field: &'static str,
}

/// Tasks.
pub(crate) const TASKS: Ids = Ids { noun: "task", path: "/documents/tasks", field: "task_id" };

/// API keys.
pub(crate) const KEYS: Ids = Ids { noun: "key", path: "/auth/keys", field: "id" };

impl Ids {
    /// The id that a person names: by itself, or by its beginning if no other id begins so. Anything else is returned as it is,
    /// for the server to refuse.
    ///
    /// # Errors
    /// If no id or several ids begin so.
    pub(crate) fn complete(&self, client: &Client, named: &str) -> Result<String> {
        if !is_prefix(named) {
            return Ok(named.to_owned());
        }
        let mut found = self.listed(client, &QueryString::default(), None)?;
        found.retain(|id| id.starts_with(named));
        let missing = || not_found(format!("no {} has an id that begins with {named}", self.noun));
        self.only(named, found)?.ok_or_else(missing)
    }

    /// The ids of a listing, at most `limit` if one is given.
    pub(crate) fn listed(
        &self,
        client: &Client,
        query: &QueryString,
        limit: Option<usize>,
    ) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        each_item(client, self.path, query, limit, &mut |item: Value| {
            ids.push(field(&item, self.field));
            Ok(())
        })?;
        Ok(ids)
    }

    /// The id of a list with one id; `None` of an empty list.
    ///
    /// # Errors
    /// If there are several ids: which they are.
    pub(crate) fn only(&self, named: &str, mut found: Vec<String>) -> Result<Option<String>> {
        if found.len() < 2 {
            return Ok(found.pop());
        }
        let more = if found.len() > LISTED { " and more" } else { "" };
        found.truncate(LISTED);
        let (noun, ids) = (self.noun, found.join(", "));
        Err(usage(format!("several {noun}s are meant by {named}; name one by its id: {ids}{more}")))
    }
}

/// Whether a text has the form of an id: 32 lower-case hexadecimal digits.
pub(crate) fn is_id(text: &str) -> bool {
    text.len() == LENGTH && is_hexadecimal(text)
}

/// Whether a text can be the beginning of an id, and not a whole one.
pub(crate) fn is_prefix(text: &str) -> bool {
    (MIN_PREFIX..LENGTH).contains(&text.len()) && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_32_hexadecimal_digits_and_prefixes_at_least_6() {
        assert!(is_id(&"0a".repeat(16)));
        assert!(!is_id(&"0A".repeat(16)) && !is_id("tides.md") && !is_id(""));
        assert!(is_prefix("0a0a0a") && is_prefix(&"0".repeat(31)));
        assert!(!is_prefix("0a0a0") && !is_prefix(&"0".repeat(32)) && !is_prefix("tides.md"));
    }

    #[test]
    fn several_ids_are_listed_in_the_error() {
        let ids = |count: usize| (0..count).map(|n| format!("{n:032x}")).collect::<Vec<_>>();
        assert_eq!(TASKS.only("000000", ids(0)).unwrap(), None);
        assert_eq!(TASKS.only("000000", ids(1)).unwrap(), Some("0".repeat(32)));
        let error = TASKS.only("000000", ids(12)).unwrap_err().to_string();
        assert!(
            error.starts_with("several tasks are meant by 000000") && error.ends_with(" and more"),
            "{error}"
        );
        assert!(error.contains(&ids(2).join(", ")), "{error}");
    }
}

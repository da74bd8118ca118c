use lkr_auth::{ApiKey, NewKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::timestamp::timestamp;

/// A new API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyInput {
    /// A name for the key, 1 to 100 characters.
    #[schema(min_length = 1, max_length = 100)]
    pub(crate) name: String,
    /// How long the key is valid, in seconds. By default it does not expire, or it expires with the key that created it.
    #[schema(minimum = 1)]
    pub(crate) expires_in: Option<u64>,
    /// The spaces that the key sees, the open ones included; the caller must be able to read each. By default those of its
    /// owner.
    #[schema(min_items = 1, max_items = 100)]
    pub(crate) spaces: Option<Vec<String>>,
    /// What the key may do at most; write by default.
    pub(crate) scope: Option<ScopeInput>,
}

/// What an API key may do at most.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScopeInput {
    /// Reading.
    Read,
    /// Reading and writing.
    #[default]
    Write,
}

/// An API key without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyItem {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    created_at: String,
    /// Null if the key does not expire.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    /// The spaces that the key sees; null for those of its owner.
    #[schema(required)]
    spaces: Option<Vec<String>>,
    /// read or write
    scope: &'static str,
}

impl From<ApiKey> for KeyItem {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            created_at: timestamp(key.created_at),
            expires_at: key.expires_at.map(timestamp),
            spaces: key.scope.spaces.map(|spaces| spaces.into_iter().map(String::from).collect()),
            scope: if key.scope.write { "write" } else { "read" },
        }
    }
}

/// A created API key with its secret.
#[derive(Serialize, ToSchema)]
pub(crate) struct ShownKey {
    #[serde(flatten)]
    item: KeyItem,
    /// The secret, shown only once. Send it as `Authorization: Bearer <key>`.
    key: String,
}

impl From<NewKey> for ShownKey {
    fn from(created: NewKey) -> Self {
        Self { item: created.key.into(), key: created.secret }
    }
}

/// A page of API keys, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeyList {
    pub(crate) items: Vec<KeyItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of revoking an API key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedKey {
    pub(crate) id: String,
    pub(crate) deleted: bool,
}

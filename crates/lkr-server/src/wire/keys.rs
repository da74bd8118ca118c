use lkr_auth::{ApiKey, NewKey};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    formats::{Id, SpaceText},
    timestamp::timestamp,
};

/// A new API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyInput {
    /// A name for the key, 1 to 100 characters.
    #[schema(
        min_length = 1,
        max_length = 100,
        pattern = "^[^\\x00-\\x1f\\x7f-\\x9f]*[^\\s\\x00-\\x1f\\x7f-\\x9f][^\\x00-\\x1f\\x7f-\\x9f]*$"
    )]
    pub(crate) name: String,
    /// How long the key is valid, in seconds. By default it does not expire, or it expires with the key that created it.
    #[schema(minimum = 1, maximum = 3_155_760_000_u64)]
    pub(crate) expires_in: Option<u64>,
    /// The spaces that the key sees, the open ones included; the caller must be able to read each. By default those of its
    /// owner.
    #[schema(value_type = Option<Vec<SpaceText>>, min_items = 1, max_items = 100)]
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
    /// Its id.
    #[schema(value_type = Id)]
    id: String,
    /// Its name.
    name: String,
    /// When it was created.
    #[schema(format = DateTime)]
    created_at: String,
    /// Null if the key does not expire.
    #[schema(required, format = DateTime)]
    expires_at: Option<String>,
    /// The spaces that the key sees; null for those of its owner.
    #[schema(required, value_type = Option<Vec<SpaceText>>)]
    spaces: Option<Vec<String>>,
    /// read or write
    #[schema(value_type = ScopeInput)]
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
    /// The keys of the page.
    pub(crate) items: Vec<KeyItem>,
    /// The cursor of the next page; null on the last page.
    #[schema(required)]
    pub(crate) next_offset: Option<String>,
}

/// The result of revoking an API key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedKey {
    /// The id of the key.
    #[schema(value_type = Id)]
    pub(crate) id: String,
    /// true
    pub(crate) deleted: bool,
}
